//! sdmon's output as keys and values, although much of it is no valid JSON.
//!
//! Older versions leave out commas and quotes, print bare text, and repeat keys; newer ones print arrays over several
//! lines. One file may hold several runs. So it is read key by key: a quoted word before a colon is a key, and what
//! follows up to the next key or the line's end is its value.

/// The keys and values of one run, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pairs: Vec<(String, String)>,
}

impl Run {
    /// The first value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Every key and value, in order.
    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Renames the second and later pairs of a key.
    pub(super) fn rename_repeated(&mut self, from: &str, to: &str) {
        for (name, _) in self.pairs.iter_mut().filter(|(name, _)| name == from).skip(1) {
            to.clone_into(name);
        }
    }
}

/// Splits a text into runs: each `{` starts one.
pub(super) fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut run = Run::default();
    let mut array: Option<(String, String)> = None;
    for line in text.lines() {
        let mut rest = line.trim();
        if let Some((key, mut value)) = array.take() {
            let end = rest.find(']');
            value.push_str(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
            match end {
                Some(end) => {
                    run.pairs.push((key, value));
                    rest = rest.get(end + 1..).unwrap_or_default();
                }
                None => {
                    array = Some((key, value));
                    continue;
                }
            }
        }
        array = read_line(rest, &mut run, &mut runs);
    }
    run.pairs.extend(array);
    close(&mut run, &mut runs);
    runs
}

fn close(run: &mut Run, runs: &mut Vec<Run>) {
    if !run.pairs.is_empty() {
        runs.push(std::mem::take(run));
    }
}

/// Reads one line, which may hold several pairs; gives back the array that it leaves open.
fn read_line(line: &str, run: &mut Run, runs: &mut Vec<Run>) -> Option<(String, String)> {
    let mut rest = line;
    while let Some(at) = rest.find(['"', '{']) {
        let after = rest.get(at + 1..)?;
        if rest.as_bytes().get(at) == Some(&b'{') {
            close(run, runs);
            rest = after;
            continue;
        }
        let end = after.find('"')?;
        let key = after.get(..end)?.trim();
        let Some(value) = after.get(end + 1..)?.trim_start().strip_prefix(':').map(str::trim_start) else {
            rest = after.get(end + 1..)?;
            continue;
        };
        if let Some(items) = value.strip_prefix('[') {
            let Some(end) = items.find(']') else { return Some((key.to_owned(), items.to_owned())) };
            run.pairs.push((key.to_owned(), items.get(..end)?.to_owned()));
            rest = items.get(end + 1..)?;
        } else if let Some(text) = value.strip_prefix('"') {
            let end = text.find('"').unwrap_or(text.len());
            run.pairs.push((key.to_owned(), text.get(..end)?.to_owned()));
            rest = text.get(end..)?.strip_prefix('"').unwrap_or_default();
        } else {
            let end = bare_end(value);
            let bare = value.get(..end)?.trim_end_matches(|c: char| matches!(c, ',' | '}') || c.is_whitespace());
            run.pairs.push((key.to_owned(), bare.to_owned()));
            rest = value.get(end..)?;
        }
    }
    None
}

/// Where a value without quotes ends: before the next key, or at the line's end.
fn bare_end(value: &str) -> usize {
    value.find(['"', '{']).unwrap_or(value.len())
}

/// The items of an array or of a bare list, without quotes and blanks.
pub(super) fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(|item| item.trim().trim_matches('"').trim()).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let runs = runs(text);
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].pairs().to_vec()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn old_output_without_commas_and_quotes_is_read() {
        let text = "{\n\"device\":\"/dev/mmcblk0\",\n\"read\":\"signature 0xff 0xff\"\n\"Speed mode\": Class 10\n\
            \"Raw card capacity\": 60351 MB,\n\"Flash ID\": 0x45,0x3e,\n\"Remaining life\": 100%,\n\"success\":true\n}";
        let expected = [
            pair("device", "/dev/mmcblk0"),
            pair("read", "signature 0xff 0xff"),
            pair("Speed mode", "Class 10"),
            pair("Raw card capacity", "60351 MB"),
            pair("Flash ID", "0x45,0x3e"),
            pair("Remaining life", "100%"),
            pair("success", "true"),
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn several_keys_per_line_and_arrays_over_lines_are_read() {
        let text = "{ \"a\": [\"0x00\",\"0x01\"], \"b\": [1,\n 2,\n 3 ], \"c\": 4, \"d\": \"x\" }";
        assert_eq!(pairs(text), [pair("a", "\"0x00\",\"0x01\""), pair("b", "1,2,3 "), pair("c", "4"), pair("d", "x")]);
        assert_eq!(items("\"0x00\",\"0x01\"").collect::<Vec<_>>(), ["0x00", "0x01"]);
    }

    #[test]
    fn runs_are_split_and_invalid_text_is_dropped() {
        let text = "# ./sdmon\n{\n{\n\"a\": 1\n}\nTrying \"x\"...\n{\n\"a\": 2\n";
        let runs = runs(text);
        assert_eq!(runs.iter().map(|run| run.get("a").unwrap()).collect::<Vec<_>>(), ["1", "2"]);
        for rubbish in ["", "\"", "\"a", "\"a\"", "{{{\"\"\"", "\u{fffd}\"\u{fffd}\":", "\"a\":[", "\"a\":\""] {
            let found: Vec<_> = super::runs(rubbish).into_iter().flat_map(|run| run.pairs).collect();
            assert!(found.len() <= 1, "{rubbish}");
        }
    }

    #[test]
    fn repeated_keys_can_be_renamed() {
        let mut run = Run { pairs: vec![pair("a", "1"), pair("a", "2")] };
        run.rename_repeated("a", "b");
        assert_eq!((run.get("a"), run.get("b")), (Some("1"), Some("2")));
    }
}
