//! Documents and lines of JSON against their schemas and the golden lists of their keys.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
#[cfg(not(feature = "schema"))]
use serde_json::json;

use crate::support::{self, emmclab};

/// Each of these prints a document that starts as every document does and fits its schema; all together have the keys
/// of the golden list.
pub(crate) fn documents(name: &str, commands: &[Vec<String>]) {
    let schema = schema(name);
    let mut keys = BTreeSet::new();
    for args in commands {
        let run = emmclab(args.iter().map(String::as_str).chain(["--json"]));
        assert!(run.code != 2 && run.stderr.is_empty(), "{}: {}", run.args, run.stderr);
        let start = format!(
            "{{\n  \"schema\": \"emmclab.{name}/1\",\n  \"tool\": \"emmclab {}\",\n",
            env!("CARGO_PKG_VERSION")
        );
        assert!(run.stdout.starts_with(&start) && run.stdout.ends_with("}\n"), "{}: {:.200}", run.args, run.stdout);
        let document = run.json();
        support::schema::check(&schema, &document).unwrap_or_else(|why| panic!("{}: {why}", run.args));
        collect(&document, "", &mut keys);
    }
    compare(name, &keys);
}

/// The same of lines of JSON that are no documents.
pub(crate) fn lines(name: &str, lines: &str) {
    let schema = schema(name);
    let mut keys = BTreeSet::new();
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        support::schema::check(&schema, &value).unwrap_or_else(|why| panic!("{line}: {why}"));
        collect(&value, "", &mut keys);
    }
    compare(name, &keys);
}

#[cfg(feature = "schema")]
pub(crate) fn schema(name: &str) -> Value {
    emmclab(["schema", name]).exits(0).json()
}

/// Without the feature there is no schema: this one accepts every document.
#[cfg(not(feature = "schema"))]
pub(crate) fn schema(_: &str) -> Value {
    support::skip("the binary is built without the feature schema");
    json!({"additionalProperties": true})
}

/// Where the keys are the kernel's words, not this program's.
const MAPS: [&str; 6] = ["sysfs", "host.ios", "host.err_stats", "card.sysfs", "card.host.ios", "card.host.err_stats"];

/// Every key with the keys above it; an element of a list has `[]` before it.
fn collect(value: &Value, above: &str, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(_) if MAPS.contains(&above) => {}
        Value::Object(object) => {
            for (key, value) in object {
                let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
                collect(value, &path, keys);
                keys.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{above}[]"), keys)),
        _ => {}
    }
}

fn compare(name: &str, keys: &BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/json_keys/{name}.txt"));
    if std::env::var_os("EMMCLAB_WRITE_KEYS").is_some() {
        let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
        return std::fs::write(&path, lines).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let golden: BTreeSet<String> = golden.lines().map(str::to_owned).collect();
    let gone: Vec<_> = golden.difference(keys).collect();
    let new: Vec<_> = keys.difference(&golden).collect();
    assert!(gone.is_empty(), "{name}: keys that scripts may use are gone: {gone:?} (new: {new:?})");
    assert!(new.is_empty(), "{name}: new keys; EMMCLAB_WRITE_KEYS=1 writes them: {new:?}");
}
