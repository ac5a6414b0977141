//! What is wrong with a profile's text, in one line: where, which field, why.

use std::ops::Range;

/// One line for an error of the TOML reader.
pub(super) fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(Range { start, .. }) = error.span() else { return message };
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    match field(text, before) {
        Some(field) => format!("line {line}, {field}: {message}"),
        None => format!("line {line}: {message}"),
    }
}

/// The field that `before` ends in: its table and its key.
fn field(text: &str, before: &str) -> Option<String> {
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next().unwrap_or("").trim();
    let header = |line: &str| Some(line.strip_prefix('[')?.split(']').next()?.trim_matches('[').trim().to_owned());
    if let Some(table) = header(line) {
        return Some(format!("[{table}]"));
    }
    let table = before.lines().rev().find_map(|line| header(line.trim()));
    let key = line.split_once('=').map(|(key, _)| key.trim()).filter(|key| !key.is_empty());
    match (table, key) {
        (Some(table), Some(key)) => Some(format!("{table}.{key}")),
        (None, Some(key)) => Some(key.to_owned()),
        (Some(table), None) => Some(format!("[{table}]")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::{Profile, ProfileError, shipped};

    #[test]
    fn an_error_is_one_line_with_place_field_and_reason() {
        let good = shipped::text("generic-8g").unwrap();
        for (from, to, field, reason) in [
            ("planes = 2", "planes = \"two\"", "nand.planes", "invalid type: string"),
            ("planes = 2", "plains = 2", "nand.plains", "unknown field `plains`"),
            ("planes = 2", "planes = -2", "nand.planes", "invalid value: integer `-2`"),
            ("cell = \"mlc\"", "cell = \"qlc\"", "nand.cell", "unknown variant `qlc`"),
            ("page_bytes = 16384\n", "", "[nand]", "missing field `page_bytes`"),
            ("manufacturer_id = 0xfe", "manufacturer_id = 0x1fe", "identity.manufacturer_id", "invalid value"),
            ("[controller]", "[control]", "[control]", "unknown field `control`"),
            ("kind = \"emmc\"", "kind = \"ssd\"", "kind", "unknown variant `ssd`"),
            ("kind = \"emmc\"", "kind = ", "kind", ""),
            ("kind = \"emmc\"", "kind = \"emmc\"\nkind = \"sd\"", "kind", "duplicate key"),
            ("[nand]", "[nand", "[nand]", ""),
            ("static_gap = 100", "gap = 100", "ftl.wear", "unknown field `gap`"),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{from}");
            let Err(ProfileError::Syntax(message)) = Profile::from_toml(&text) else { panic!("{to} was accepted") };
            let place = format!(", {field}: ");
            assert!(message.starts_with("line ") && message.contains(&place), "{to}: {message}");
            assert!(message.contains(reason) && !message.contains('\n'), "{to}: {message}");
        }
        let Err(ProfileError::Syntax(message)) = Profile::from_toml("") else { panic!("nothing was accepted") };
        assert!(message.contains("missing field `name`"), "{message}");
    }
}
