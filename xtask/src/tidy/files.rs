//! Rules that hold inside one file.

/// A file longer than this has more than one concern.
const LINES_MAX: usize = 400;

/// Tables, for which a split would not help.
const TABLES: [&str; 2] = ["crates/emmc-regs/src/ext_csd/table_", "crates/emmc-regs/src/manufacturer/table.rs"];

/// The files that may hold `unsafe` code, each with its reason beside it.
const UNSAFE_FILES: [&str; 17] = [
    "crates/emmc-linux/src/block_io/discard.rs",
    "crates/emmc-linux/src/block_io/uring.rs",
    "crates/emmc-linux/src/ffu_ioctl.rs",
    "crates/emmc-linux/src/ioctl.rs",
    "crates/emmc-linux/src/lock_ioctl.rs",
    "crates/emmc-linux/src/rpmb_ioctl.rs",
    "crates/emmc-linux/src/stdio.rs",
    "crates/emmc-qemu/src/device.rs",
    "crates/emmc-qemu/src/host.rs",
    "crates/emmc-qemu/src/lib.rs",
    "crates/emmc-qemu/src/qemu.rs",
    "crates/emmc-serve/src/child.rs",
    "crates/emmc-serve/src/guest_memory.rs",
    "crates/emmc-serve/src/loop_device.rs",
    "crates/emmc-serve/src/store/data.rs",
    "crates/emmc-serve/src/store/slots.rs",
    "crates/emmc-serve/src/uml/page.rs",
];

/// The crates with I/O, clocks and threads; all others are core and have none.
const EDGE: [&str; 7] = ["emmc-linux", "emmc-qemu", "emmc-serve", "emmc-lab", "emmc-compare", "emmc-guest", "emmclab"];

/// The functions that send what changes a card, where they are, and the one file that calls them.
const SENDS: [&str; 5] = [
    concat!("send_", "approved("),
    concat!("ioctl::send_", "erase("),
    concat!("send_", "firmware("),
    concat!("send_", "lock("),
    concat!("send_", "rpmb("),
];
const SENDERS: [&str; 5] = [
    "crates/emmc-linux/src/commit.rs",
    "crates/emmc-linux/src/ffu_ioctl.rs",
    "crates/emmc-linux/src/ioctl.rs",
    "crates/emmc-linux/src/lock_ioctl.rs",
    "crates/emmc-linux/src/rpmb_ioctl.rs",
];

/// What the core does not use outside its tests.
const OUTSIDE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env::",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
];

/// Made from Cargo.lock.
const YOCTO_CRATES: &str = "contrib/yocto/meta-emmclab/recipes-bsp/emmclab/emmclab-crates.inc";

/// Words that belong to one machine or to a registry, and the files that need them. Split, so that this file passes its
/// own check.
const FORBIDDEN: [(&str, &[&str]); 9] = [
    (concat!("/ho", "me/"), &[]),
    (concat!("/ro", "ot/"), &[]),
    (concat!("/wo", "rk/"), &[]),
    (concat!("/Us", "ers/"), &[]),
    (concat!("crates", ".io"), &["Cargo.lock", "fuzz/Cargo.lock", YOCTO_CRATES]),
    (concat!("pypi", ".org"), &[]),
    (concat!("python", "hosted"), &[]),
    (concat!("npm", "js.org"), &[]),
    (concat!("debian", ".org"), &[]),
];

/// Everything wrong in the file at `path`, counted from the top of the repository; `tests` are files that only tests
/// are built of.
pub(crate) fn check(path: &str, text: &str, tests: &[String]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut report = |line: usize, what: String| violations.push(format!("{path}:{line}: {what}"));
    for (word, allowed) in FORBIDDEN {
        if !allowed.contains(&path) {
            for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
                report(index + 1, format!("{word:?} does not belong into the tree"));
            }
        }
    }
    let is_member = path.starts_with("crates/") || path.starts_with("xtask/");
    if is_member && path.ends_with("/Cargo.toml") && !text.contains("[lints]\nworkspace = true") {
        report(1, "expected [lints] workspace = true, which denies unsafe code".into());
    }
    if !path.ends_with(".rs") {
        return violations;
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !TABLES.iter().any(|table| path.starts_with(table)) {
        report(lines, format!("{lines} lines, more than {LINES_MAX}: split by concern"));
    }
    for (index, line) in text.lines().enumerate().filter(|(_, line)| allows_unsafe(line)) {
        if !UNSAFE_FILES.contains(&path) {
            report(index + 1, format!("{:?} outside {UNSAFE_FILES:?}", line.trim()));
        }
    }
    let sends = |line: &str| !SENDERS.contains(&path) && SENDS.iter().any(|name| line.contains(name));
    for (index, _) in text.lines().enumerate().filter(|(_, line)| sends(line)) {
        report(index + 1, format!("a command that changes a card is sent outside {:?}", SENDERS[0]));
    }
    let is_test = tests.iter().any(|test| path.strip_suffix(".rs").unwrap_or(path).starts_with(test.as_str()));
    if !is_test && path.starts_with("crates/") && path.contains("/src/") {
        for (index, line) in code(text).filter(|(_, line)| leaves_crate(path, line)) {
            report(index + 1, format!("{:?} is not in the crate's package; link the file into the crate", line.trim()));
        }
    }
    if is_core(path) && !tests.iter().any(|test| path.strip_suffix(".rs").unwrap_or(path).starts_with(test.as_str())) {
        for (index, line) in code(text) {
            for word in OUTSIDE.iter().filter(|word| line.contains(*word)) {
                report(index + 1, format!("{word:?} in a core crate"));
            }
        }
    }
    violations
}

/// Whether a file from outside the crate is included, which the published crate does not have.
fn leaves_crate(path: &str, line: &str) -> bool {
    // crates/NAME/src/a/b.rs: two folders up is still the crate.
    let inside = path.matches('/').count().saturating_sub(2);
    line.contains("include_") && line.matches("../").count() > inside
}

/// Every file below testdata has a row, or a row of its folder, in its README.
pub(crate) fn provenance(files: &[String], readme: &str) -> Vec<String> {
    let rows: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let has_row = |file: &str| rows.iter().any(|row| *row == file || row.ends_with('/') && file.starts_with(row));
    let without = files.iter().filter(|file| *file != "README.md" && !has_row(file));
    without.map(|file| format!("testdata/{file}: no row in testdata/README.md says where it comes from")).collect()
}

/// The changelog has a section for unreleased changes, or names this version.
pub(crate) fn changelog(text: &str) -> Vec<String> {
    let current = |line: &str| {
        let heading = line.strip_prefix("## ").unwrap_or_default().trim_start_matches('[');
        heading.starts_with("Unreleased") || heading.starts_with(env!("CARGO_PKG_VERSION"))
    };
    let message = concat!("CHANGELOG.md: no heading \"## Unreleased\" or \"## ", env!("CARGO_PKG_VERSION"), "\"");
    if text.lines().any(current) { Vec::new() } else { vec![message.into()] }
}

/// The files that `#[cfg(test)] mod NAME;` in the file at `path` leads to, also by `#[path = "FILE"]`.
///
/// Each without its extension, so that it is also the prefix of files in a folder of that name.
pub(crate) fn test_files(path: &str, text: &str) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let inner = ["/lib", "/main", "/mod"].iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
    let beside = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let file = |line: &str| {
        let named = line.strip_prefix("mod ").and_then(|line| line.strip_suffix(';'));
        let placed = line.strip_prefix("#[path = \"").and_then(|line| line.strip_suffix("\"]"));
        let placed = placed.map(|file| file.strip_suffix(".rs").unwrap_or(file));
        named.map(|name| format!("{inner}/{name}")).or_else(|| placed.map(|file| format!("{beside}/{file}")))
    };
    let pairs = text.lines().zip(text.lines().skip(1)).filter(|(above, _)| above.trim() == "#[cfg(test)]");
    pairs.filter_map(|(_, line)| file(line.trim())).collect()
}

fn is_core(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    inside.is_some_and(|(name, _)| !EDGE.contains(&name))
}

/// The lines before a file's own tests, without comments.
pub(super) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let below = text.lines().skip(1).chain([""]);
    let own_tests = |above: &str, line: &str| above.trim() == "#[cfg(test)]" && line.ends_with('{');
    let lines = text.lines().zip(below).take_while(move |(above, line)| !own_tests(above, line));
    lines.map(|(line, _)| line).enumerate().filter(|(_, line)| !is_comment(line))
}

pub(super) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The workspace's lints deny unsafe code; this finds exceptions in a file.
fn allows_unsafe(line: &str) -> bool {
    !is_comment(line) && ["allow", "warn", "expect"].iter().any(|level| line.contains(&format!("{level}(unsafe_code")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        super::check(path, text, &[])
    }

    #[test]
    fn a_clean_file_passes() {
        assert_eq!(check("crates/emmc-regs/src/lib.rs", "//! Unsafe code is absent.\nfn a() {}\n"), [] as [&str; 0]);
        let tested = "fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(check("crates/emmc-port/src/x.rs", tested), [] as [&str; 0]);
        assert_eq!(check("crates/emmc-linux/src/sysfs.rs", "use std::fs;\n"), [] as [&str; 0]);
        assert_eq!(check("Cargo.lock", concat!("source = crates", ".io-index\n")), [] as [&str; 0]);
    }

    #[test]
    fn each_rule_names_the_line() {
        let long = "//\n".repeat(LINES_MAX + 1);
        for (path, text, expected) in [
            ("a.md", concat!("x\nsee /ho", "me/me\n"), "a.md:2: "),
            ("crates/a/Cargo.toml", "[package]\n", "crates/a/Cargo.toml:1: "),
            ("a.rs", concat!("#![allow", "(unsafe_code)]\n"), "a.rs:1: "),
            ("a.rs", long.as_str(), "a.rs:401: 401 lines"),
            (
                "crates/emmc-regs/src/a.rs",
                "\nuse std::fs::File;\n",
                "crates/emmc-regs/src/a.rs:2: \"std::fs\" in a core crate",
            ),
            (
                "crates/emmc-linux/src/a.rs",
                concat!("ioctl::send_", "approved(&device, command)\n"),
                "crates/emmc-linux/src/a.rs:1: ",
            ),
            ("crates/emmclab/src/a.rs", concat!("send_", "rpmb(&device, &command)\n"), "crates/emmclab/src/a.rs:1: "),
            ("crates/emmclab/src/a.rs", concat!("send_", "firmware(&device, &it)\n"), "crates/emmclab/src/a.rs:1: "),
            ("crates/a/src/b/c.rs", "include_str!(\"../../../testdata/x\")\n", "crates/a/src/b/c.rs:1: "),
        ] {
            let violations = check(path, text);
            assert!(violations.len() == 1 && violations[0].starts_with(expected), "{violations:?}");
        }
        assert_eq!(check("crates/a/src/b/c.rs", "include_str!(\"../../assets/x\")\n"), [] as [&str; 0]);
        assert_eq!(check("crates/emmc-regs/src/ext_csd/table_low.rs", &long), [] as [&str; 0]);
        assert_eq!(check(UNSAFE_FILES[0], concat!("#![allow", "(unsafe_code)]\n")), [] as [&str; 0]);
    }

    #[test]
    fn test_files_are_found_by_their_mod_lines() {
        let declares = "#[cfg(test)]\nmod totality;\nmod model;\n";
        for (path, expected) in [
            ("crates/emmc-analysis/src/maker_health/mod.rs", "crates/emmc-analysis/src/maker_health/totality"),
            ("crates/emmc-analysis/src/lib.rs", "crates/emmc-analysis/src/totality"),
            ("crates/emmc-analysis/src/health.rs", "crates/emmc-analysis/src/health/totality"),
        ] {
            assert_eq!(test_files(path, declares), [expected]);
            for file in [format!("{expected}.rs"), format!("{expected}/mod.rs"), format!("{expected}/real.rs")] {
                assert_eq!(super::check(&file, "use std::fs;\n", &[expected.into()]), [] as [&str; 0]);
            }
        }
        let placed = "#[cfg(test)]\n#[path = \"sdmon_tests.rs\"]\nmod tests;\n";
        assert_eq!(test_files("src/maker_health/sdmon.rs", placed), ["src/maker_health/sdmon_tests"]);
        assert_eq!(check("crates/emmc-port/src/x.rs", "#[cfg(test)]\nmod a;\nuse std::fs;\n").len(), 1);
    }

    #[test]
    fn test_data_has_a_row() {
        let readme = "| file | part |\n|---|---|\n| a/b.hex | x |\n| tree/ | y |\n";
        let files = ["README.md", "a/b.hex", "tree/c/d", "a/c.hex"].map(str::to_string);
        let violations = provenance(&files, readme);
        assert!(violations.len() == 1 && violations[0].starts_with("testdata/a/c.hex: "), "{violations:?}");
    }

    #[test]
    fn the_changelog_is_current() {
        for text in
            ["# Changelog\n\n## Unreleased\n", "## [Unreleased]\n", concat!("## ", env!("CARGO_PKG_VERSION"), "\n")]
        {
            assert_eq!(changelog(text), [] as [&str; 0], "{text:?}");
        }
        assert_eq!(changelog("## 0.0.1\n").len(), 1);
        assert_eq!(changelog("").len(), 1);
    }
}
