//! A register's number is in the one field table only; other code uses the register's constant.

use super::files::code;

/// The table, and the crate that owns it.
const OWNER: &str = "crates/emmc-regs/";
const TABLE: &str = "crates/emmc-regs/src/ext_csd/table_";

/// What may stand between a field's name and its number: in a tuple, a constant, a quotation.
const BETWEEN: [&str; 6] = ["\", ", ": u8 = ", ": u16 = ", ": usize = ", ": u32 = ", "["];

/// Accessors of EXT_CSD that take a byte's number.
const ACCESSORS: [&str; 5] = [".byte(", ".bit(", ".uint(", ".set_uint(", ".is_inferred("];

/// Names and numbers of every field, as the table's own text has them.
pub(crate) fn fields(texts: &[(String, String)]) -> Vec<(String, u16)> {
    let rows = texts.iter().filter(|(path, _)| path.starts_with(TABLE)).flat_map(|(_, text)| text.lines());
    rows.filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix("field(\"")?.split_once("\", ")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    })
    .filter(|(name, _)| name != "RESERVED")
    .collect()
}

/// Every line of code outside the table's crate and outside tests that restates a register's number.
pub(crate) fn check(path: &str, text: &str, tests: &[String], fields: &[(String, u16)]) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or_default();
    let is_test = tests.iter().any(|test| stem.starts_with(test.as_str()));
    let is_judged = path.starts_with("crates/") && path.contains("/src/") && !path.starts_with(OWNER);
    if stem.is_empty() || is_test || !is_judged {
        return Vec::new();
    }
    let found = code(text).filter_map(|(index, line)| Some((index, restated(line, fields)?)));
    found.map(|(index, what)| format!("{path}:{}: {what}", index + 1)).collect()
}

fn restated(line: &str, fields: &[(String, u16)]) -> Option<String> {
    if let Some((name, number)) = fields.iter().find(|(name, number)| is_beside(line, name, *number)) {
        return Some(format!("{number} restates {name}: use reg::{name}"));
    }
    let byte = ACCESSORS.iter().find_map(|accessor| line.split(accessor).skip(1).find_map(leading_number));
    byte.map(|byte| format!("byte {byte} of EXT_CSD by its number: use its constant in reg"))
}

/// Whether a line has a field's whole name directly followed by the field's number.
fn is_beside(line: &str, name: &str, number: u16) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (line.get(..at).unwrap_or_default(), line.get(at + name.len()..).unwrap_or_default());
        let is_whole = !before.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
        let behind = BETWEEN.iter().find_map(|between| after.strip_prefix(between));
        // In `NAME[142:140]` the lowest byte is last.
        let numbers =
            behind.map(|rest| rest.split(|c: char| !c.is_ascii_digit() && c != ':').next().unwrap_or_default());
        let lowest = numbers.and_then(|numbers| numbers.rsplit(':').next()?.parse().ok());
        is_whole && lowest == Some(number)
    })
}

/// The number that is the first argument, where it is one.
fn leading_number(arguments: &str) -> Option<u16> {
    let digits = arguments.split(|c: char| !c.is_ascii_digit()).next()?;
    let is_argument = arguments.get(digits.len()..)?.starts_with([',', ')']);
    digits.parse().ok().filter(|_| is_argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restated_register_numbers_are_found() {
        let table = "    field(\"SEC_COUNT\", 212, 4, &[R], 2, \"\")\n    field(\"RESERVED\", 27, 2, &[], 0, \"\"),\n";
        let fields = fields(&[(format!("{TABLE}low.rs"), table.into())]);
        assert_eq!(fields, [("SEC_COUNT".to_owned(), 212)]);
        let found = |line: &str| check("crates/emmc-linux/src/a.rs", line, &[], &fields).len();
        for line in [
            "    (\"SEC_COUNT\", 212, 4),",
            "const SEC_COUNT: usize = 212;",
            "format!(\"SEC_COUNT[215:212] = {count}\")",
            "let byte = csd.byte(192)?;",
            "(csd.byte(reg::EXT_CSD_REV), csd.uint(212, 4))",
        ] {
            assert_eq!(found(line), 1, "{line}");
        }
        for line in [
            "csd.raw(reg::SEC_COUNT)",
            "(\"SEC_COUNT\", 4)",
            "const OWN_SEC_COUNT: usize = 212;",
            "self.csd().bits(83, 80)",
            "// SEC_COUNT[215:212]",
            "csd.byte(offset + 1)",
        ] {
            assert_eq!(found(line), 0, "{line}");
        }
        assert_eq!(check("crates/emmc-regs/src/a.rs", "csd.byte(192)", &[], &fields).len(), 0);
        assert_eq!(
            check(
                "crates/emmc-linux/src/a/tests.rs",
                "csd.byte(192)",
                &["crates/emmc-linux/src/a/tests".into()],
                &fields
            )
            .len(),
            0
        );
    }
}
