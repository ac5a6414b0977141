//! The verdict first: at most eight lines of 80 columns, for every part with registers in testdata.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::cards::ext_csd;
use crate::support::{command, emmclab, save, scratch, skip, testdata};

/// What a screen shows.
const SCREEN: (usize, usize) = (80, 24);
/// The verdict with the card's name.
const VERDICT_LINES: usize = 8;

/// Every EXT_CSD in testdata, as a name below the folder.
fn dumps() -> Vec<String> {
    let root = testdata("ext_csd_raw");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(&root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "hex") {
                found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    found
}

/// What a study prints on a terminal of 80 columns, without colours.
fn on_a_terminal(source: &str) -> String {
    let mut study = command();
    study.args(["study", source, "--color", "never"]).env("COLUMNS", "80").current_dir(testdata("ext_csd_raw"));
    let output = study.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The lines from the title to the first empty one.
fn head(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.is_empty()).collect()
}

/// The sentence for a manager: how much is used, and between which dates the life ends; the same forecast as `health`.
#[test]
fn earlier_observations_give_the_dates_between_which_the_life_ends() {
    let folder = scratch("since");
    let dump = |name: &str, life_b: u32| {
        save(&folder, name, ext_csd(&[(192, 1, 8), (196, 1, 0x57), (267, 1, 1), (268, 1, 1), (269, 1, life_b)]))
    };
    let (old, mid, now) = (dump("old.bin", 7), dump("mid.bin", 8), dump("now.bin", 9));
    let since = [format!("{old}@2026-01-10T08:00:00Z"), format!("{mid}@2026-05-10T08:00:00Z")];
    let options = ["--since", &since[0], "--since", &since[1], "--at", "2026-11-10T08:00:00Z"];
    let of = |verb: &str| emmclab([verb, &now, "--json"].iter().chain(&options)).json();
    let (study, health) = (of("study"), of("health"));
    assert_eq!(study["forecast"], health["forecast"]);
    let text = emmclab(["study", &now, "--full"].iter().chain(&options)).words();
    let day = |which: &str| study["forecast"]["end"][which]["time"].as_str().unwrap()[..10].to_owned();
    let ends = format!("at the present rate it ends between {} and {}", day("earliest"), day("latest"));
    assert!(text.contains(&format!("of rated life used (type B; type A: 0 % to 10 %); {ends}")), "{text}");
    assert!(text.contains(&format!("This card has used 80 % to 90 % of its rated life; {ends}.")), "{text}");
    assert!(text.contains("observations 3 from 2026-01-10"), "{text}");
    let without = emmclab(["study", &now, "--json"]).json();
    assert_eq!(without.get("forecast"), None);
    let missing = emmclab(["study", &now, "--since", &old]).exits(2);
    assert!(missing.stderr.contains("time"), "{missing:?}");
}

#[test]
fn the_verdict_of_every_part_fits_a_screen() {
    for source in dumps() {
        let text = on_a_terminal(&source);
        let head = head(&text);
        // The line below the title and the source's name are no part of the verdict.
        let verdict = head.len() - 2;
        assert!(verdict <= VERDICT_LINES && head.len() < SCREEN.1, "{source}: {} lines\n{text}", head.len());
        for line in &head {
            assert!(line.chars().count() <= SCREEN.0, "{source}: {} columns: {line}", line.chars().count());
        }
        for label in ["HEALTH ", "SAFETY ", "SETUP ", "DO ", "CANNOT TELL "] {
            let count = head.iter().filter(|line| line.starts_with(label)).count();
            assert_eq!(count, 1, "{source}: {label}\n{text}");
        }
        assert!(!head.iter().any(|line| line.starts_with("SPEED")), "{source}: no dump tells a speed\n{text}");
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= SCREEN.0 || text.contains("$ emmclab"), "{source}: {widest} columns\n{text}");
    }
}

#[test]
fn the_verdict_in_json_equals_the_text() {
    for source in dumps() {
        let path = Path::new(&testdata("ext_csd_raw")).join(&source).display().to_string();
        let verdict = emmclab(["study", &path, "--json"]).json()["verdict"].clone();
        let text = on_a_terminal(&source);
        assert!(text.starts_with(verdict["card"].as_str().unwrap()), "{source}: {verdict}\n{text}");
        let health = verdict["health"]["text"].as_str().unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let said: Vec<&str> = health.split_whitespace().collect();
        assert!(words.windows(said.len()).any(|window| window == said), "{source}: {health}\n{text}");
        assert_eq!(verdict["virtual"], false, "{source}");
        let count = verdict["do"].as_array().unwrap().len();
        assert!((1..=2).contains(&count), "{source}: {verdict}");
        // Health is never better in the verdict than in the registers.
        let health = emmclab(["health", &path, "--json"]).json();
        assert_eq!(verdict["health"]["severity"], health["verdict"]["severity"], "{source}");
    }
}

/// Every advice of a verdict works: the commands of this tool run and name this source.
#[test]
fn the_commands_of_a_verdict_run() {
    let folder = scratch("verdict_commands");
    for source in dumps() {
        let path = Path::new(&testdata("ext_csd_raw")).join(&source).display().to_string();
        for todo in emmclab(["study", &path, "--json"]).json()["verdict"]["do"].as_array().unwrap() {
            let line = todo["command"].as_str().unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[0], "emmclab", "{line}");
            let mut run = command();
            let output = run.args(&words[1..]).current_dir(&folder).output().unwrap();
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1 | 3)), "{line}: {code:?}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn no_line_of_a_study_is_repeated() {
    for source in dumps() {
        let text = on_a_terminal(&source);
        let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.len() > 30).collect();
        let count = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), count, "{source}\n{text}");
    }
}

#[test]
fn a_field_is_one_line_and_full_adds_its_access() {
    let klm = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let count = emmclab(["show", &klm, "--json"]).json()["fields"].as_array().unwrap().len();
    let short = emmclab(["show", &klm]).exits(0).stdout;
    // Headings and remarks beside one line for each field.
    assert!(short.lines().count() <= count + 24, "{} lines for {count} fields\n{short}", short.lines().count());
    assert!(short.lines().any(|line| line.contains("SEC_COUNT") && line.contains("15269888 sectors")), "{short}");
    let full = emmclab(["show", &klm, "--full"]).exits(0).stdout;
    assert!(full.contains("access") && full.contains("once") && !short.contains("once"), "{full}");
}

/// A pager is used only on a terminal, if the text does not fit, and not with `--no-pager`.
#[test]
fn long_text_goes_through_the_users_pager() {
    let Ok(_) = Command::new("script").arg("--version").output() else { return skip("no script(1) for a terminal") };
    let folder = scratch("pager");
    let klm = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let paged = |options: &str| {
        let seen = folder.join("seen");
        let _ = std::fs::remove_file(&seen);
        let program = env!("CARGO_BIN_EXE_emmclab");
        let line = format!("stty rows 24 cols 80; {program} {options} study --full {klm}");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        let output =
            script.env("PAGER", format!("cat > {}", seen.display())).env("LC_ALL", "C.UTF-8").output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), std::fs::read_to_string(&seen).unwrap_or_default())
    };
    let (shown, seen) = paged("");
    assert!(seen.contains("HEALTH") && !shown.contains("HEALTH"), "shown:\n{shown}\nseen:\n{seen}");
    let (shown, seen) = paged("--no-pager");
    assert!(shown.contains("HEALTH") && seen.is_empty(), "shown:\n{shown}\nseen:\n{seen}");
    // Not a terminal: no pager with any setting.
    let mut piped = command();
    let output = piped.args(["study", "--full", &klm]).env("PAGER", "false").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("HEALTH"));
}

#[test]
#[cfg(all(feature = "bench", feature = "sim"))]
fn findings_of_a_bench_are_findings_of_the_study() {
    let folder = scratch("verdict_bench");
    let run = emmclab(["bench", "sim:friendlyelec-emmc-8g", "--suite", "trim", "--json"]);
    let result = run.json();
    let of_result = result["findings"].as_array().unwrap();
    let slow = of_result.iter().find(|finding| finding["id"] == "slow-when-full").unwrap();
    assert_eq!((&slow["severity"], &slow["commands"][0]["command"]), (&"warning".into(), &"fstrim -av".into()));
    let trim = save(&folder, "trim.json", &run.stdout);
    let study = emmclab(["study", "sim:friendlyelec-emmc-8g", "--bench", &trim]).exits(1);
    assert!(study.stdout.contains("times slower; one trim cures it"), "{}", study.stdout);
    let head = head(&study.stdout);
    assert!(head.iter().any(|line| line.starts_with("DO ") && line.contains("fstrim -av")), "{head:?}");
    assert!(head.iter().any(|line| line.starts_with("SPEED ")), "{head:?}");
}
