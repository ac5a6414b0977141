//! Addresses of the kernel's functions.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// The line of a function in `/proc/kallsyms`, with its end; `None` if the kernel does not have it or does not show its
/// address.
pub(super) fn symbol(name: &str) -> Option<String> {
    find(BufReader::new(File::open("/proc/kallsyms").ok()?), name)
}

fn find(table: impl BufRead, name: &str) -> Option<String> {
    let mut lines = table.lines().map_while(Result::ok);
    let line = lines.find(|line| line.split_ascii_whitespace().nth(2) == Some(name))?;
    let is_shown = line.split(' ').next().is_some_and(|address| address.contains(|digit| digit != '0'));
    is_shown.then(|| line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_address_is_none() {
        let table =
            "0000000000000000 t hidden\t[sdhci]\nffffffffc03a1b20 t shown\t[sdhci]\nffffffffc03a1b30 T shown_too\n";
        assert_eq!(find(table.as_bytes(), "hidden"), None);
        assert_eq!(find(table.as_bytes(), "show"), None);
        assert_eq!(find(table.as_bytes(), "shown").as_deref(), Some("ffffffffc03a1b20 t shown\t[sdhci]\n"));
        assert_eq!(find(table.as_bytes(), "shown_too").as_deref(), Some("ffffffffc03a1b30 T shown_too\n"));
    }
}
