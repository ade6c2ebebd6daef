"""The tables of channels: each is checked by the channel's own model, with `enabled` added and unknown keys refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, create_model

from atlasbridge.config.model import SPELT_SECONDS

ON_BY_DEFAULT = frozenset({"web"})

_FLAG = TypeAdapter(bool)

SettingsClass = Callable[[str], type | None]  # a channel's name to its settings class; None: it has none


def table_model(name: str, settings: type | None) -> type[BaseModel]:
    """The pydantic model of `[channels.NAME]`."""
    shows = '"whole": all that is asked; "excerpt": at most 200 characters of it, and no screen.'
    extra: dict[str, Any] = {
        "enabled": (bool, Field(True, description="Whether this channel is used.")),
        "show": (Literal["whole", "excerpt"], Field("whole", description=shows)),
    }
    if settings is None:
        return create_model(f"{name}_table", __config__=ConfigDict(extra="allow", frozen=True), **extra)
    if issubclass(settings, BaseModel):
        return create_model(f"{name}_table", __base__=settings, __cls_kwargs__={"extra": "forbid"}, **extra)
    if is_dataclass(settings):
        hints = get_type_hints(settings)
        for item in fields(settings):
            default = item.default if item.default is not MISSING else ...
            if item.default_factory is not MISSING:
                default = Field(default_factory=item.default_factory)
            spelt = item.name.endswith("_s") and hints[item.name] is float
            extra[item.name] = (Annotated[float, SPELT_SECONDS] if spelt else hints[item.name], default)
        return create_model(f"{name}_table", __config__=ConfigDict(extra="forbid", frozen=True), **extra)
    raise TypeError(f"the settings of channel {name} are neither a pydantic model nor a dataclass")


def is_enabled(name: str, table: Mapping[str, Any] | None) -> bool:
    """A channel is on when its table is there and does not say otherwise; the page is on without one."""
    if table is None:
        return name in ON_BY_DEFAULT
    try:
        return _FLAG.validate_python(table.get("enabled", True))
    except ValidationError:
        return True  # the check of the table says what is wrong


def plain(model: BaseModel) -> dict[str, Any]:
    """The checked values as a channel gets them: secrets as text, without what every channel has."""
    values = {name: _reveal(value) for name, value in model.model_dump().items()}
    return {name: value for name, value in values.items() if name not in ("enabled", "show")}


def _reveal(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else value
