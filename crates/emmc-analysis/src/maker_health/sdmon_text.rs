//! sdmon's output as keys and values, although much of it is no valid JSON.
//!
//! Older versions leave out commas and quotes and repeat keys; newer ones print arrays over several lines. One file
//! may hold several runs, with prompts and messages between them. Inside a run nothing is skipped: a piece that no
//! version prints means that the text is damaged, and then none of it is read, because a lost digit can make a worn
//! card look new.

/// Pieces of sdmon's output that a copy damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// What is there.
    pub(super) found: String,
}

/// Keys that one run prints once for each method that it tries.
const ONE_A_METHOD: [&str; 6] = ["signature", "idata.response[]", "error", "error1", "error2", "read_via_cmd56_arg_1"];

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

    /// A key with two values, of which only one can be true.
    pub(super) fn contradiction(&self) -> Option<&str> {
        let differs = |key: &str, value: &str| self.get(key).is_some_and(|first| first != value);
        let once = |key: &str| !ONE_A_METHOD.contains(&key);
        self.pairs.iter().find(|(key, value)| once(key) && differs(key, value)).map(|(key, _)| key.as_str())
    }
}

/// Splits a text into runs: each begins with `{` at the start of a line and ends with `}`.
pub(super) fn runs(text: &str) -> Result<Vec<Run>, Damage> {
    let mut reader = Reader { text, at: 0 };
    let mut runs = Vec::new();
    while let Some(line) = reader.rest().lines().next() {
        let start = line.trim_start();
        if start.starts_with('{') {
            reader.at += line.len() - start.len() + 1;
            runs.extend(Some(reader.run()?).filter(|run| !run.pairs.is_empty()));
        } else if start.starts_with(['"', '}']) {
            return Err(reader.damage("outside of a run"));
        }
        reader.next_line();
    }
    Ok(runs)
}

/// The text and the place up to which it is read.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn damage(&self, what: &str) -> Damage {
        let line = 1 + self.text.get(..self.at).unwrap_or_default().matches('\n').count();
        let words: String = self.rest().lines().next().unwrap_or_default().trim().chars().take(40).collect();
        Damage { line, found: if words.is_empty() { format!("the end {what}") } else { format!("{words:?} {what}") } }
    }

    fn next_line(&mut self) {
        self.at += self.rest().find('\n').map_or(self.rest().len(), |end| end + 1);
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, letter: char) -> bool {
        let found = self.rest().starts_with(letter);
        self.at += if found { letter.len_utf8() } else { 0 };
        found
    }

    /// Up to a letter, and past it; on this line unless `over_lines`.
    fn up_to(&mut self, letter: char, over_lines: bool) -> Result<&'t str, Damage> {
        let rest = self.rest();
        let found = rest.find(letter).and_then(|end| rest.get(..end)).filter(|word| over_lines || !word.contains('\n'));
        let word = found.ok_or_else(|| self.damage(&format!("without {letter}")))?;
        self.at += word.len() + letter.len_utf8();
        Ok(word)
    }

    /// The pairs up to the closing brace.
    fn run(&mut self) -> Result<Run, Damage> {
        let mut run = Run::default();
        loop {
            self.skip_blanks();
            if self.take('}') {
                let behind = self.rest().lines().next().unwrap_or_default();
                return if behind.contains(['"', '{', '}']) { Err(self.damage("behind a run")) } else { Ok(run) };
            }
            // Transcend's own version opens a run twice.
            if run.pairs.is_empty() && self.take('{') {
                continue;
            }
            if !self.take('"') {
                return Err(self.damage("where a key should be"));
            }
            let key = self.up_to('"', false)?;
            if !self.take(':') {
                return Err(self.damage(&format!("behind the key {key:?}")));
            }
            self.take(' ');
            let value = self.value()?;
            run.pairs.push((key.trim().to_owned(), value));
        }
    }

    /// A value and the comma behind it, which old versions leave out at a line's end.
    fn value(&mut self) -> Result<String, Damage> {
        let value = if self.take('"') {
            self.string()?
        } else if self.take('[') {
            let items = self.up_to(']', true)?;
            if items.contains(['{', '}', ':', '[']) || items.matches('"').count() % 2 != 0 {
                return Err(self.damage("behind a list that has no end"));
            }
            items.to_owned()
        } else {
            return self.bare();
        };
        let line = self.rest().lines().next().unwrap_or_default();
        if !(line.trim().is_empty() || line.starts_with(',') || line.trim_start().starts_with('}')) {
            return Err(self.damage("behind a value"));
        }
        self.take(',');
        Ok(value)
    }

    /// A string up to its closing quote.
    fn string(&mut self) -> Result<String, Damage> {
        let word = self.up_to('"', false)?;
        if !word.contains('\\') {
            return Ok(word.to_owned());
        }
        // An escaped quote does not end the string.
        let start = self.at - word.len() - 2;
        while self.text.get(..self.at - 1).is_some_and(|before| before.ends_with('\\') && !before.ends_with("\\\\")) {
            self.up_to('"', false)?;
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(literal).map_err(|_| self.damage("behind a string with an unknown escape"))
    }

    /// A value without quotes: up to the line's end, the closing brace or the comma before the next key.
    fn bare(&mut self) -> Result<String, Damage> {
        let rest = self.rest();
        let word = rest.get(..rest.find(['"', '{', '}', '\n']).unwrap_or(rest.len())).unwrap_or_default();
        let next = rest.get(word.len()..).and_then(|rest| rest.chars().next());
        let said = word.trim_end_matches(['\r', '\t']);
        let ended = said.trim_end().strip_suffix(',');
        let value = ended.unwrap_or(said);
        let value = if next == Some('}') { value.trim_end() } else { value };
        let is_number = value.starts_with(|letter: char| letter.is_ascii_digit());
        if value.starts_with(' ') || (is_number && value.ends_with(' ')) {
            return Err(self.damage("with a blank for a digit"));
        }
        if matches!(next, Some('{') | None) || (next == Some('"') && ended.is_none()) {
            return Err(self.damage("in a value"));
        }
        self.at += word.len();
        Ok(value.trim_end().to_owned())
    }
}

/// The items of an array or of a bare list, without quotes and blanks.
pub(super) fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(|item| item.trim().trim_matches('"').trim()).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let runs = runs(text).unwrap();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].pairs().to_vec()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn old_output_without_commas_and_quotes() {
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
    fn several_keys_on_a_line_and_arrays_over_lines() {
        let text = "{ \"a\": [\"0x00\",\"0x01\"], \"b\": [1,\n 2,\n 3 ], \"c\": 4, \"d\": \"x\" }";
        assert_eq!(
            pairs(text),
            [pair("a", "\"0x00\",\"0x01\""), pair("b", "1,\n 2,\n 3 "), pair("c", "4"), pair("d", "x")]
        );
        assert_eq!(items("\"0x00\",\"0x01\"").collect::<Vec<_>>(), ["0x00", "0x01"]);
        assert_eq!(pairs(r#"{"a":1,"b":"q\"\\","c":2}"#), [pair("a", "1"), pair("b", "q\"\\"), pair("c", "2")]);
    }

    #[test]
    fn runs_are_split_and_words_between_them_are_left_out() {
        let text = "# ./sdmon\n{\n{\n\"a\": 1\n}\nTrying \"x\"...\n{\n\"a\": 2\n}\n";
        let values: Vec<String> = runs(text).unwrap().iter().map(|run| run.get("a").unwrap().to_owned()).collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(runs("").unwrap(), []);
        assert_eq!(runs("no sdmon").unwrap(), []);
    }

    #[test]
    fn what_no_version_prints_is_damage() {
        for (text, line, found) in [
            ("{\n\"a\": 1\n", 3, "the end where a key should be"),
            ("\"a\": 1\n}\n", 1, "\"\\\"a\\\": 1\" outside of a run"),
            ("{\n\"a\": 1\"00,\n}", 2, "\"1\\\"00,\" in a value"),
            ("{\n\"a\": \"1,\n}", 2, "\"1,\" without \""),
            ("{\n\"a\"b\": 1,\n}", 2, "\"b\\\": 1,\" behind the key \"a\""),
            ("{\n\"a\": 10 ,\n}", 2, "\"10 ,\" with a blank for a digit"),
            ("{\n\"a\":  0,\n}", 2, "\"0,\" with a blank for a digit"),
            ("{\n\"a\": \"b\"c\",\n}", 2, "\"c\\\",\" behind a value"),
            ("{\n\"a\": [\"b],\n}", 2, "\",\" behind a list that has no end"),
            ("{\n\"a\": 1\n{\n\"a\": 2\n}", 3, "\"{\" where a key should be"),
        ] {
            assert_eq!(runs(text), Err(Damage { line, found: found.into() }), "{text}");
        }
    }

    #[test]
    fn a_key_with_two_values_is_found_and_can_be_renamed() {
        let mut run =
            Run { pairs: vec![pair("signature", "1"), pair("signature", "2"), pair("a", "1"), pair("a", "2")] };
        assert_eq!(run.contradiction(), Some("a"));
        run.rename_repeated("a", "b");
        assert_eq!((run.get("a"), run.get("b"), run.contradiction()), (Some("1"), Some("2"), None));
    }
}
