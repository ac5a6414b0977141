//! The part of JSON Schema that the documents' schemas use. Absent on purpose: formats, patterns, other files.

use std::collections::BTreeSet;

use serde_json::Value;

/// What does not fit, or which names of the object's keys the schema knows.
type Known = Result<BTreeSet<String>, String>;

/// Checks a document. Unlike the standard, a key that the schema does not name is an error: the schema describes all
/// output.
pub(crate) fn check(schema: &Value, document: &Value) -> Result<(), String> {
    Checker { root: schema }.whole(schema, document, "$")
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn whole(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let known = self.fits(schema, value, at)?;
        match value.as_object().into_iter().flatten().find(|(key, _)| !known.contains(*key)) {
            Some((key, _)) => Err(format!("{at}.{key}: the schema does not name it")),
            None => Ok(()),
        }
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Known {
        let mut known = BTreeSet::new();
        let Some(schema) = schema.as_object() else {
            return if schema == &Value::Bool(true) { Ok(known) } else { Err(format!("{at}: nothing is allowed")) };
        };
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$ref" => known.extend(self.fits(self.target(rule, at)?, value, at)?),
                "type" => self.has_type(rule, value, at)?,
                "const" if rule != value => return Err(format!("{at}: expected {rule}, found {value}")),
                "enum" if !list(rule).contains(value) => return Err(format!("{at}: {value} is none of {rule}")),
                "anyOf" | "oneOf" => known.extend(self.alternative(keyword, rule, value, at)?),
                "properties" => known.extend(self.properties(rule, value, at)?),
                "additionalProperties" if rule != &Value::Bool(false) => {
                    known.extend(value.as_object().into_iter().flatten().map(|(key, _)| key.clone()));
                }
                "required" => {
                    let missing = list(rule).iter().find(|key| value.get(key.as_str().unwrap_or_default()).is_none());
                    if let Some(key) = missing.filter(|_| value.is_object()) {
                        return Err(format!("{at}: {key} is missing"));
                    }
                }
                "prefixItems" => self.items(list(rule).iter(), value, at)?,
                "items" if schema.get("prefixItems").is_none() => self.items(std::iter::repeat(rule), value, at)?,
                "minItems" | "maxItems" | "minimum" | "maximum" => within(keyword, rule, value, at)?,
                "const" | "enum" | "items" | "additionalProperties" => {}
                "$schema" | "$defs" | "title" | "description" | "format" | "default" => {}
                other => return Err(format!("{at}: the checker does not know {other:?}")),
            }
        }
        Ok(known)
    }

    fn target(&self, reference: &Value, at: &str) -> Result<&Value, String> {
        let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| self.root.pointer(pointer)).ok_or(format!("{at}: no {reference}"))
    }

    fn alternative(&self, keyword: &str, rules: &Value, value: &Value, at: &str) -> Known {
        let tried: Vec<Known> = list(rules).iter().map(|rule| self.fits(rule, value, at)).collect();
        let fitting = tried.iter().filter(|known| known.is_ok()).count();
        if fitting == 0 || keyword == "oneOf" && fitting > 1 {
            let why: Vec<_> = tried.into_iter().filter_map(Result::err).collect();
            return Err(format!("{at}: {fitting} of {} alternatives fit: {}", list(rules).len(), why.join("; ")));
        }
        Ok(tried.into_iter().flatten().flatten().collect())
    }

    fn properties(&self, rules: &Value, value: &Value, at: &str) -> Known {
        let mut known = BTreeSet::new();
        for (key, rule) in rules.as_object().into_iter().flatten() {
            if let Some(value) = value.get(key) {
                self.whole(rule, value, &format!("{at}.{key}"))?;
            }
            known.insert(key.clone());
        }
        Ok(known)
    }

    fn items<'r>(&self, rules: impl Iterator<Item = &'r Value>, value: &Value, at: &str) -> Result<(), String> {
        let mut items = rules.zip(list(value)).enumerate();
        items.try_for_each(|(index, (rule, item))| self.whole(rule, item, &format!("{at}[{index}]")))
    }

    fn has_type(&self, rule: &Value, value: &Value, at: &str) -> Result<(), String> {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is = |name: &Value| name == found || name == "number" && found == "integer";
        let fits = is(rule) || list(rule).iter().any(is);
        if fits { Ok(()) } else { Err(format!("{at}: expected {rule}, found {found} {value}")) }
    }
}

fn within(keyword: &str, limit: &Value, value: &Value, at: &str) -> Result<(), String> {
    let counted = match keyword {
        "minItems" | "maxItems" => value.as_array().map(|items| items.len() as f64),
        _ => value.as_f64(),
    };
    let (Some(counted), Some(limit)) = (counted, limit.as_f64()) else { return Ok(()) };
    let fits = if keyword.starts_with("min") { counted >= limit } else { counted <= limit };
    if fits { Ok(()) } else { Err(format!("{at}: {counted} breaks {keyword} {limit}")) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
