"""Repair of params that contain null for a missing field, or `[]` for an empty object.

JavaScript and Lua clients send null for missing values, and Lua and PHP write an empty table as a list. Used
only after the usual decoding has refused the params.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec import inspect as types

from compactd.daemon.rpc.empty_list import is_empty_list
from compactd.protocol.messages import NULL

_tree: dict[type[Struct], types.Type] = {}


def drop_nulls(raw: Raw, struct: type[Struct]) -> bytes:
    """Return `raw` without optional fields that are null and do not allow null, and with `{}` instead of `[]`
    for empty objects.

    `{}` replaces `[]` only where the type is a struct without required fields. Nested structs are repaired as
    well. Fields of the type `Raw` are the user's data and stay byte for byte. O(bytes x depth).
    """
    tree = _tree.get(struct)
    if tree is None:
        tree = _tree[struct] = types.type_info(struct)
    return msgspec.json.encode(_clean(raw, tree))


def _clean(raw: Raw, info: types.Type) -> Raw:
    first = bytes(memoryview(raw)[:1])
    if first not in (b"{", b"["):
        return raw
    options = info.types if isinstance(info, types.UnionType) else (info,)
    if first == b"[" and not any(isinstance(option, types.CollectionType) for option in options):
        is_empty = any(_may_be_empty(option) for option in options) and is_empty_list(raw)
        return Raw(b"{}") if is_empty else raw
    for option in options:
        match option:
            case types.StructType() if first == b"{":
                members = msgspec.json.decode(raw, type=dict[str, Raw])
                if _is_tagged_as(members, option):
                    return _clean_members(members, option)
            case types.DictType() if first == b"{":
                values = msgspec.json.decode(raw, type=dict[str, Raw])
                return _raw({key: _clean(value, option.value_type) for key, value in values.items()})
            case types.CollectionType() if first == b"[":
                items = msgspec.json.decode(raw, type=list[Raw])
                return _raw([_clean(item, option.item_type) for item in items])
            case _:
                pass
    return raw


def _clean_members(members: dict[str, Raw], info: types.StructType) -> Raw:
    for field in info.fields:
        value = members.get(field.encode_name)
        if value is None:
            continue
        if value != NULL:
            members[field.encode_name] = _clean(value, field.type)
        elif not field.required and not _allows_null(field.type):
            del members[field.encode_name]
    return _raw(members)


def _may_be_empty(info: types.Type) -> bool:
    if not isinstance(info, types.StructType) or info.tag_field is not None:
        return False
    return not any(field.required for field in info.fields)


def _allows_null(info: types.Type) -> bool:
    options = info.types if isinstance(info, types.UnionType) else (info,)
    return any(isinstance(option, types.NoneType | types.RawType | types.AnyType) for option in options)


def _is_tagged_as(members: dict[str, Raw], info: types.StructType) -> bool:
    if info.tag_field is None:
        return True
    tag = members.get(info.tag_field)
    return tag is not None and msgspec.json.decode(tag) == info.tag


def _raw(value: dict[str, Raw] | list[Raw]) -> Raw:
    return Raw(msgspec.json.encode(value))
