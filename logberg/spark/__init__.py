"""The audit on Spark, for programs: what `docs/audit/` shows. Needs the extra `logberg[audit]`.

Public names only: other modules of ours import from `audit.spark`.
"""

from audit.findings.finding import Finding
from audit.findings.rule_files import read_rules
from audit.findings.rules import RuleSet
from audit.spark.packaging import SUBMIT_SCRIPT, submit_settings, write_package
from audit.spark.pipeline.pipeline import run_pipeline
from audit.spark.session import SparkUnavailableError, audit_session
from audit.spark.source.log_source import batches, read_log, stream_log

__all__ = [
    "SUBMIT_SCRIPT",
    "Finding",
    "RuleSet",
    "SparkUnavailableError",
    "audit_session",
    "batches",
    "read_log",
    "read_rules",
    "run_pipeline",
    "stream_log",
    "submit_settings",
    "write_package",
]
