"""The language server in a process of its own, asked by pygls's client as an editor asks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
URI = "file:///program.sql"
SECONDS = 60.0  # until an answer has failed


class Asked:
    """An editor with one program open."""

    def __init__(self, client: LanguageClient, problems: asyncio.Queue[Any]) -> None:
        self._client = client
        self._problems = problems
        self._version = 0

    async def opens(self, text: str) -> list[types.Diagnostic]:
        self._client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "sql", self._version, text))
        )
        return await self._shown()

    async def types(self, text: str) -> list[types.Diagnostic]:
        self._version += 1
        self._client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self._version, URI),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return await self._shown()

    async def completes(self, line: int, character: int) -> list[str]:
        found = await self._client.text_document_completion_async(
            types.CompletionParams(types.TextDocumentIdentifier(URI), types.Position(line, character))
        )
        assert isinstance(found, types.CompletionList)
        return [item.label for item in found.items]

    async def points_at(self, line: int, character: int) -> str | None:
        found = await self._client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(line, character))
        )
        return found and found.contents.value  # type: ignore[union-attr]

    async def lays_out(self) -> list[str]:
        options = types.FormattingOptions(tab_size=4, insert_spaces=True)
        found = await self._client.text_document_formatting_async(
            types.DocumentFormattingParams(types.TextDocumentIdentifier(URI), options)
        )
        return [edit.new_text for edit in found or ()]

    async def _shown(self) -> list[types.Diagnostic]:
        return list((await self._problems.get()).diagnostics)


def asked(work: Callable[[Asked], Awaitable[T]], *options: str) -> T:
    """Result of the work with an editor, with these options of its server."""

    async def run() -> T:
        client = LanguageClient("editor", "1")
        problems: asyncio.Queue[Any] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda shown: problems.put_nowait(shown))
        await client.start_io(sys.executable, "-m", "sqlflow_edl.cli.main", "language-server", *options)
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        try:
            return await asyncio.wait_for(work(Asked(client, problems)), SECONDS)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    return asyncio.run(run())


def test_programs_are_checked_completed_explained_and_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)

    async def work(editor: Asked) -> None:
        [found] = await editor.opens("SELECT '🌍';\nSELECT * FROM t TO TRAIN DNNClasifier LABEL y INTO m;")
        assert (found.range.start, found.range.end) == (types.Position(1, 25), types.Position(1, 37))
        assert "did you mean DNNClassifier" in found.message
        assert found.severity == types.DiagnosticSeverity.Error
        assert await editor.types("SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m;") == []
        [wrong] = await editor.types("SELEC 1;")
        assert wrong.message.endswith("(did you mean SELECT? SELECT 1)")
        await editor.types("select * from t to train DNNClassifier with train.ep")
        assert (await editor.completes(0, 52))[0] == "train.epoch"
        await editor.types("select * from t to train DNNClassifier with train.epoch = 3 label y into m;")
        told = await editor.points_at(0, 50)
        assert told is not None and told.startswith("train.epoch: ")
        told = await editor.points_at(0, 20)
        assert told is not None and told.startswith("query [TO] TRAIN model")
        told = await editor.points_at(0, 40)  # WITH
        assert told is not None and told.startswith("query [TO] TRAIN model")
        assert await editor.points_at(0, 14) is None  # a table
        [text] = await editor.lays_out()
        assert text == "select * from t TO TRAIN DNNClassifier WITH train.epoch = 3 LABEL y INTO m;\n"
        await editor.types(text)
        assert await editor.lays_out() == []

    asked(work)


@pytest.mark.soak
def test_tables_columns_and_models_of_a_data_source_are_known(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE flowers AS SELECT 1.0 AS width, 'a' AS kind")

    async def work(editor: Asked) -> None:
        found = await editor.opens("SELECT width, knd FROM flowers TO TRAIN DNNClassifier LABEL kind INTO m;")
        assert ["knd" in each.message for each in found] == [True]
        assert "flowers" in await editor.completes(0, 25)
        [unfinished] = await editor.types("SELECT  FROM flowers")
        assert "without selection list" in unfinished.message
        assert {"width", "kind"} <= set(await editor.completes(0, 7))

    asked(work, "--source", f"duckdb:///{tmp_path}/a.duckdb")
