// Lets Node import the page's modules as a browser does: "/answering.js" is a file of the folder that ATLAS_PAGE names.
import { register } from "node:module";

register(`data:text/javascript,${encodeURIComponent(`
import { pathToFileURL } from "node:url";
const root = pathToFileURL(process.env.ATLAS_PAGE + "/");
export const resolve = (name, context, next) => (name.startsWith("/") && name.endsWith(".js") ? { url: new URL("." + name, root).href, format: "module", shortCircuit: true } : next(name, context));
`)}`);
globalThis.window = { localStorage: null, sessionStorage: null };
