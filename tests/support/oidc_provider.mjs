// A real OpenID Connect provider (npm: oidc-provider) for one client, with people in groups.  Arguments: the package's
// folder, the client's redirect address.  Prints its issuer.
import http from "node:http";
import { pathToFileURL } from "node:url";

const [, , folder, redirect] = process.argv;
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`).href);
const GROUPS = { ada: ["eng-backend", "fleet-admins"], bert: ["eng-backend"], carl: ["sales"] };

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "fleet", client_secret: "hush", redirect_uris: [redirect] }],
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    pkce: { required: () => true },
    cookies: { keys: ["test"] },
    findAccount: (context, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, preferred_username: id, groups: GROUPS[id] ?? [] }),
    }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
