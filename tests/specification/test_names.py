"""All that the documents name can be imported: from one module, and from where the document has it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from atlasbridge import specification

# made from the documents: every class, function and table that they write as code
DOCUMENTS = {
    "reliability": """PTYSupervisor PromptDetector BasePromptLabScenario DetectorResult PromptRecord PosixPTYBackend
        ConPTYBackend PartialLinePromptScenario ANSIRedrawScenario OverwrittenPromptScenario SilentBlockScenario
        NestedPromptsScenario MultipleChoiceScenario YesNoVariantsScenario PressEnterScenario
        FreeTextConstraintScenario OutputFloodScenario EchoLoopScenario ConPTYBaselineScenario""",
    "architecture": """PromptDetector PromptEvent PromptType Confidence BaseChannel BaseAdapter ClaudeAdapter
        OpenAIAdapter GenericPTYAdapter AdapterRegistry NullChannel LocalChannel AuditWriter verify_chain PromptRouter
        BasePTY Session AtlasBridgeConfig decide_prompt""",
    "claude_adapter": """PromptDetector PTYSupervisor PromptType ClaudeAdapter ConfigError load_config decide_prompt
        INJECT_BYTES""",
    "adapter_interface": """BaseAdapter PromptEvent Reply PromptType Confidence AdapterRegistry AdapterStartError
        AdapterInjectionError ReplayAttackError ClaudeCodeAdapter OpenAIAdapter PromptDetector INJECT_BYTES
        make_idempotency_key SupervisorState""",
}
PLACES = {
    "atlasbridge.adapters.base": "BaseAdapter PromptEvent Reply PromptType Confidence",
    "atlasbridge.adapters.registry": "AdapterRegistry",
    "atlasbridge.adapters.claude_code": "ClaudeAdapter ClaudeCodeAdapter",
    "atlasbridge.adapters.openai_cli": "OpenAIAdapter",
    "atlasbridge.channels.base": "BaseChannel",
    "atlasbridge.channels.local": "NullChannel LocalChannel",
    "atlasbridge.core.constants": "INJECT_BYTES",
    "atlasbridge.os.tty.base": "BasePTY",
    "atlasbridge.adapters.claude": "ClaudeCodeAdapter",
    "atlasbridge.core.audit": "AuditWriter verify_chain",
    "atlasbridge.core.prompt": "PromptEvent PromptType Confidence",
    "atlasbridge.core.routing": "PromptRouter",
    "atlasbridge.core.session": "Session",
    "atlasbridge.cli.main": "cli main",
    "ptypool.pty_pool": "PtyPool PtyError",
    "ptypool.cli_adapter": "adapter_for CliAdapter",
    "ptypool.session": "Session",
    "ptypool.sync": "PtyPool PtyHandle PtyError CliType CliAdapter adapter_for",
}
NAMED = [
    *(("atlasbridge.specification", name) for names in DOCUMENTS.values() for name in names.split()),
    *((place, name) for place, names in PLACES.items() for name in names.split()),
]


@pytest.mark.parametrize(("module", "name"), NAMED, ids=lambda word: word.rpartition(".")[2])
def test_what_a_document_names_can_be_imported(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None


def test_the_module_of_the_documents_exports_what_is_listed_here_and_nothing_else() -> None:
    assert sorted(specification.__all__) == sorted({name for names in DOCUMENTS.values() for name in names.split()})


def test_what_the_documents_make_without_arguments_can_be_made_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path))
    assert specification.NullChannel().name == "null" and specification.LocalChannel().name == "local"
    assert specification.load_config().general.prompts.timeout_seconds > 0
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[prompts]\ntimeout_seconds = 'soon and late'\n")
    wrong.chmod(0o600)
    with pytest.raises(specification.ConfigError):
        specification.load_config(wrong)
