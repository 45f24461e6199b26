"""A run's receipt as Croissant 1.0, the metadata by which ML tools find and load a dataset.

The format is https://docs.mlcommons.org/croissant/docs/croissant-spec.html. Each shard is a file with its SHA-256;
`documents` and `tokens` are record sets, each over all of its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from schemas.passwords import redacted
from schemas.tables import tokens_schema
from transforms.filters.kept_counts import documents_schema
from transforms.records.in_toto import products

CROISSANT = "croissant.json"
"""The file that a description is published as."""

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

MEANINGS = {
    "doc_id": "SHA-256 of the document's bytes, lower-case hex",
    "project": "the project that the document is of",
    "path": "path of the document in its source",
    "content": "the document's exact bytes",
    "num_bytes": "number of bytes of the document",
    "license": "licence, if the source gives it",
    "license_source": "where the licence is from: source, tag, text, folder or none",
    "num_tokens": "number of token ids",
    "token_ids": "the document's tokens; BOS and EOS included where the policy has them",
    "platform_ids": "platforms that the document is written for, ids of the platform vocabulary",
    "platform_info": "the evidence for the platforms, JSON",
    "source_doc_id": "SHA-256 of the bytes in the source, if the content was made from others",
    "redacted_emails": "number of e-mail addresses that were replaced in the content",
    "redacted_ips": "number of IP addresses that were replaced in the content",
    "redacted_secrets": "number of keys and tokens that were replaced in the content",
    "prefix_token_ids": "tokens of a comment that names the platforms",
}
"""The meaning of each column of the shards."""

_TABLES = {"documents": "the kept documents, byte for byte", "tokens": "the documents' tokens"}
_TYPES = {
    pa.string(): "sc:Text",
    pa.binary(): "sc:Text",
    pa.uint64(): "cr:UInt64",
    pa.uint32(): "cr:UInt32",
    pa.uint16(): "cr:UInt16",
}
_MEDIA_TYPES = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".md": "text/markdown",
}

_TERMS = (
    "@language @vocab citeAs column conformsTo cr rai data dataType dct equivalentProperty examples extract field "
    "fileProperty fileObject fileSet format includes isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace samplingRate sc separator source subField transform"
)
_OTHER_TERMS = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
_CONTEXT: dict[str, Any] = {term: _OTHER_TERMS.get(term, f"cr:{term}") for term in _TERMS.split()}
"""The context that the specification prescribes for 1.0 (its section "Namespaces")."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What the publisher of a dataset adds to its receipt.

    Attributes:
        name: Its name.
        url: Where it is published, if anywhere.
        creator: Who made it, if known.
        date: Day of publication, YYYY-MM-DD, if known.
    """

    name: str
    url: str | None = None
    creator: str | None = None
    date: str | None = None


def make_croissant(
    receipt: dict[str, Any], publication: Publication, *, licenses: Sequence[str], description: str
) -> dict[str, Any]:
    """Return the Croissant description of a run, JSON values; paths are relative to a folder like OUT."""
    about = {
        "license": list(licenses) or None,
        "url": publication.url,
        "creator": publication.creator and {"@type": "sc:Organization", "name": redacted(publication.creator)},
        "datePublished": publication.date,
    }
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": publication.name,
        "description": description,
        **{name: value for name, value in about.items() if value},
        "keywords": ["C++", "source code", "tokens"],
        "distribution": [
            *_shards("documents", receipt),
            *_shards("tokens", receipt),
            *(_file(name, sha256) for name, sha256 in products(receipt, "tokenizer").items()),
        ],
        "recordSet": [_record_set(table, schema) for table, schema in table_schemas(receipt).items()],
    }


def table_schemas(receipt: dict[str, Any]) -> dict[str, pa.Schema]:
    """Return the schemas of a run's two tables, `documents` and `tokens`."""
    prefix = receipt["configs"]["tokenize"]["platform_prefix"]
    documents = documents_schema(receipt["configs"].get("ingest", {}))
    return {"documents": documents, "tokens": tokens_schema(receipt["tokenizer"]["vocab_size"], prefix=prefix)}


def _shards(table: str, receipt: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        *(_file(name, sha256) for name, sha256 in products(receipt, table).items()),
        {
            "@type": "cr:FileSet",
            "@id": f"{table}-files",
            "encodingFormat": _MEDIA_TYPES[".parquet"],
            "includes": f"{table}/part-*.parquet",
        },
    ]


def _file(name: str, sha256: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": PurePosixPath(name).name,
        "contentUrl": name,
        "encodingFormat": _MEDIA_TYPES.get(PurePosixPath(name).suffix, "application/octet-stream"),
        "sha256": sha256,
    }


def _record_set(table: str, schema: pa.Schema) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "description": _TABLES[table],
        "field": [_field(table, field) for field in schema],
    }


def _field(table: str, field: pa.Field[Any]) -> dict[str, Any]:
    is_list = isinstance(field.type, pa.ListType)
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{field.name}",
        "name": field.name,
        "description": MEANINGS[field.name],
        "dataType": _TYPES[field.type.value_type if is_list else field.type],
        **({"repeated": True} if is_list else {}),
        "source": {"fileSet": {"@id": f"{table}-files"}, "extract": {"column": field.name}},
    }
