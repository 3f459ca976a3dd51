"""A small model server: rows come in as JSON, probabilities go out as JSON.

``POST /v1/models/credit:predict`` takes ``{"instances": [{"Age": 36, ...}, ...]}`` and returns
``{"predictions": [0.3, ...]}``: for each row the probability of the model's last class. ``GET
/health`` says that the model is loaded. It stands in for the model server that you have: it knows
no users and no limits, so nobody but mcce should reach it.

Run it with ``python model_server.py model.joblib``. Loading a joblib file runs the code in it.
"""

from __future__ import annotations

import argparse
from typing import Any

import joblib
import pandas as pd
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel


class Instances(BaseModel):
    """Rows to score, each with all columns of the model."""

    instances: list[dict[str, Any]]


def main() -> None:
    """Serve a model until the process is told to stop."""
    parser = argparse.ArgumentParser(description="Serve the probabilities of a classifier.")
    parser.add_argument("model", help="joblib file of a scikit-learn classifier")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    options = parser.parse_args()
    # Addresses of clients say nothing here: all are mcce.
    uvicorn.run(
        make_app(joblib.load(options.model)),
        host=options.host,
        port=options.port,
        access_log=False,
    )


def make_app(model: Any) -> FastAPI:
    """The two routes of a model."""
    app = FastAPI(openapi_url=None)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/models/credit:predict")
    def predict(body: Instances) -> dict[str, list[float]]:
        try:
            # By name, in the order of training: a column that is missing is an error.
            rows = pd.DataFrame(body.instances)[list(model.feature_names_in_)]
            return {"predictions": model.predict_proba(rows)[:, -1].tolist()}
        except Exception as error:
            # The kind of the error alone: its words may repeat somebody's cells, here and in logs.
            raise HTTPException(422, f"the model failed: {type(error).__name__}") from None

    return app


if __name__ == "__main__":
    main()
