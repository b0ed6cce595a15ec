"""Writes the schemas beside it from the classes they describe: python docs/schemas/write.py"""

from __future__ import annotations

import json
from pathlib import Path

from overexplain.auditing import audit_report, multiclass_report
from overexplain.auditing.monitoring import monitor_report
from overexplain.models.schema import model_schema

for name, schema in (
    ("audit", audit_report.json_schema()),
    ("model", model_schema()),
    ("monitor", monitor_report.json_schema()),
    ("multiclass", multiclass_report.json_schema()),
):
    path = Path(__file__).with_name(f"{name}.schema.json")
    path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
