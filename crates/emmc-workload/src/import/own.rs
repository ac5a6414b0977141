//! What `emmclab bench --json` and `emmclab import --json` have printed.

use serde_json::Value;

use super::{ImportError, SavedResult};
use crate::result::BenchResult;

/// The document, if the text is one of ours.
pub(super) fn value(text: &str) -> Option<Value> {
    let value: Value = text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())??;
    value.get("schema")?.as_str()?.starts_with("emmclab.").then_some(value)
}

pub(super) fn read(name: &str, value: Value) -> Result<SavedResult, ImportError> {
    let unknown = |reason: String| ImportError::Unknown {
        name: name.into(),
        reason,
        expected: "a document of the schema emmclab.bench/1 or emmclab.import/1".into(),
    };
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned();
    match schema.as_str() {
        "emmclab.bench/1" => {
            let bench: BenchResult = serde_json::from_value(value).map_err(|error| unknown(error.to_string()))?;
            Ok(SavedResult {
                name: name.into(),
                target: Some(bench.target),
                target_kind: Some(bench.target_kind),
                engine: Some(bench.engine),
                outcomes: vec![bench.outcome],
                context: bench.context,
                doubts: bench.doubts,
            })
        }
        "emmclab.import/1" => {
            let saved: SavedResult = serde_json::from_value(value).map_err(|error| unknown(error.to_string()))?;
            Ok(SavedResult { name: name.into(), ..saved })
        }
        other => Err(unknown(format!("it is a document of the schema {other:?}"))),
    }
}
