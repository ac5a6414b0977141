//! Output of `emmclab bench --json` and `emmclab import --json`.

use serde_json::Value;

use super::{ImportError, SavedResult, consistency};
use crate::result::BenchResult;

const BENCH: &str = "emmclab.bench/1";
const IMPORT: &str = "emmclab.import/1";

/// The document, if the text is one of these.
pub(super) fn value(text: &str) -> Option<Value> {
    let value: Value = text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())??;
    value.get("schema")?.as_str()?.starts_with("emmclab.").then_some(value)
}

/// Reads the output of `emmclab bench --json`.
///
/// Errors: not a document of the schema emmclab.bench/1; one that contradicts itself.
pub fn bench_result(name: &str, bytes: &[u8]) -> Result<BenchResult, ImportError> {
    let none = || no_bench(name, "it is not a document of emmclab".into());
    bench(name, value(&String::from_utf8_lossy(bytes)).ok_or_else(none)?)
}

fn no_bench(name: &str, reason: String) -> ImportError {
    let expected = format!("the output of bench --json, a document of the schema {BENCH}");
    ImportError::Unknown { name: name.into(), reason, expected }
}

fn bench(name: &str, value: Value) -> Result<BenchResult, ImportError> {
    let schema = schema(&value);
    if schema != BENCH {
        return Err(no_bench(name, format!("it is a document of the schema {schema:?}")));
    }
    let result: BenchResult = serde_json::from_value(value).map_err(|error| no_bench(name, error.to_string()))?;
    consistency::result(&result).map_err(|inconsistency| inconsistency.of(name))?;
    Ok(result)
}

fn schema(value: &Value) -> String {
    value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn read(name: &str, value: Value) -> Result<SavedResult, ImportError> {
    let unknown = |reason: String| ImportError::Unknown {
        name: name.into(),
        reason,
        expected: format!("a document of the schema {BENCH} or {IMPORT}"),
    };
    let schema = schema(&value);
    if schema == BENCH {
        let bench = bench(name, value)?;
        return Ok(SavedResult {
            name: name.into(),
            target: Some(bench.target),
            target_kind: Some(bench.target_kind),
            engine: Some(bench.engine),
            outcomes: vec![bench.outcome],
            context: bench.context,
            doubts: bench.doubts,
        });
    }
    if schema != IMPORT {
        return Err(unknown(format!("it is a document of the schema {schema:?}")));
    }
    let saved: SavedResult = serde_json::from_value(value).map_err(|error| unknown(error.to_string()))?;
    Ok(SavedResult { name: name.into(), ..saved })
}
