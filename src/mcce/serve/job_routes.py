"""Routes of uploads: begin one, watch it, fetch its files, forget it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from . import responses
from .bodies import UploadBody, check_fields, check_media, parse_json
from .job_run import JobOptions
from .jobs import Jobs
from .openapi import refused_with
from .refusals import RefusalError
from .tasks import TaskMaker, to_json

TYPES = {"csv": "text/csv", "html": "text/html", "parquet": "application/vnd.apache.parquet"}
MULTIPART = "multipart/form-data"
JobName = Annotated[str, Path(max_length=64)]


class JobRoutes:
    """The routes of uploads."""

    def __init__(self, jobs: Jobs, tasks: TaskMaker) -> None:
        self.jobs, self.tasks = jobs, tasks

    def add_to(self, app: FastAPI) -> None:
        """Add them to an application."""
        body = {"content": {MULTIPART: {"schema": UploadBody.described()}}, "required": True}
        app.post(
            "/jobs",
            status_code=202,
            response_model=responses.JobBegun,
            responses=refused_with(408, 413, 415, 422, 429, 502, 503),
            openapi_extra={"requestBody": body},
        )(self.begin)
        app.get("/jobs/{job}", response_model=responses.Job, responses=refused_with(404, 422))(
            self.state
        )
        app.get(
            "/jobs/{job}/{file}", response_class=FileResponse, responses=refused_with(404, 422)
        )(self.file)
        app.delete(
            "/jobs/{job}",
            status_code=204,
            response_class=Response,
            responses=refused_with(403, 404, 422),
        )(self.remove)

    async def begin(self, request: Request) -> Response:
        """Answer the people of a file: CSV, Parquet, Arrow or JSON lines."""
        check_media(request.headers, MULTIPART)
        form = await self._form(request)
        try:
            upload = form.get("file")
            if not isinstance(upload, UploadFile) or not upload.filename:
                raise RefusalError.of(422, "expected a file with a name", "missing", "body", "file")
            given = {name: value for name, value in form.items() if name != "file"}
            options = await run_in_threadpool(self._options, given)
            job = await run_in_threadpool(
                self.jobs.add, upload.filename[-200:], upload.file, options
            )
        finally:
            await form.close()
        return Response(to_json({"id": job}), 202, media_type="application/json")

    async def state(self, job: JobName) -> Any:
        """How far an upload is."""
        return await run_in_threadpool(self.jobs.state, job)

    async def file(self, job: JobName, file: JobName) -> FileResponse:
        """A file of an upload that is done."""
        path = await run_in_threadpool(self.jobs.file, job, file)
        kind = TYPES[path.suffix[1:]]
        # Fetched and not shown: it is made of what was uploaded.
        return FileResponse(path, media_type=kind, filename=file)

    async def remove(self, job: JobName) -> Response:
        """End and forget an upload."""
        await run_in_threadpool(self.jobs.remove, job)
        return Response(status_code=204)

    async def _form(self, request: Request) -> FormData:
        most = self.tasks.limits.bytes
        try:
            return await request.form(max_files=1, max_fields=20, max_part_size=most)
        except (HTTPException, ValueError):
            # Older parsers of forms raise errors of their own, which are ValueErrors.
            raise RefusalError.of(422, f"expected {MULTIPART}", "form", "body") from None

    def _options(self, given: dict[str, Any]) -> JobOptions:
        fields = {name: value for name, value in given.items() if value != ""}
        for name in ("rules", "n_counterfactuals"):
            if isinstance(fields.get(name), str):
                fields[name] = parse_json(fields[name].encode(), "body", name)
        body = check_fields(fields, UploadBody)
        self.tasks.check_options(body.search, body.n_counterfactuals, body.language)
        return JobOptions(
            constraints=tuple(one for _, one in self.tasks.read_rules(body.rules)),
            search=body.search,
            n_counterfactuals=body.n_counterfactuals,
            language=body.language,
            name=body.name,
            delimiter=body.delimiter,
        )
