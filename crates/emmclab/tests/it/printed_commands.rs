//! Every command that is printed runs as printed, whatever the source is named.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::cards::ext_csd;
use crate::support::{command, emmclab, emmclab_with_input, run, save, scratch, testdata};

/// Names that a shell, an option parser or a terminal could take for something else.
const NAMES: [&str; 14] = [
    "plain.hex",
    "with blank.hex",
    "  two  blanks ",
    "-x.hex",
    "--help",
    "it's.hex",
    "a'b'c\\d.hex",
    "$(exit 9)`exit 9`.hex",
    "a\"b;c&d|e>f#g.hex",
    "~*?[a].hex",
    "esc\x1b[31m\x07.hex",
    "line\nbreak\ttab%s\\n.hex",
    "ünï中\u{202e}.hex",
    "100%@2.hex",
];

/// A worn part without write reliability and with wrong values: many findings, several commands.
fn worn() -> String {
    let registers = ext_csd(&[
        (192, 1, 8),
        (196, 1, 0x57),
        (212, 4, 31_080_448),
        (224, 1, 1),
        (221, 1, 16),
        (157, 3, 939),
        (160, 1, 7),
        (166, 1, 1),
        (267, 1, 2),
        (268, 1, 8),
        (269, 1, 10),
    ]);
    registers.map(|byte| format!("{byte:02x}")).concat()
}

/// A script run by `sh` in a folder, with this program found first. Returns the exit code and the messages.
fn sh(script: &str, folder: &Path) -> (i32, String) {
    let program = command().get_program().to_owned();
    let programs = Path::new(&program).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder).env("PATH", path).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    let output = shell.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The commands of a study's JSON that are this program's.
fn commands(study: &Value) -> Vec<String> {
    let all = study["verdict"]["do"].as_array().unwrap().iter();
    let found = study["findings"].as_array().unwrap().iter();
    let found = found.filter_map(|finding| finding["commands"].as_array()).flatten();
    let own = all.chain(found).map(|command| command["command"].as_str().unwrap().to_owned());
    own.filter(|command| command.starts_with("emmclab ")).collect()
}

#[test]
fn commands_for_hostile_names_read_the_file() {
    let folder = scratch("hostile");
    let mut count = 0;
    for name in NAMES {
        save(&folder, name, worn());
        let mut study = command();
        study.current_dir(&folder).args(["study", "--json", "--"]).arg(name);
        for command in commands(&run(study).exits(1).json()) {
            let _ = std::fs::remove_file(folder.join("wear.json"));
            let (code, stderr) = sh(&command, &folder);
            assert!(code != 2 && code < 100, "{name:?}: {code} of {command}\n{stderr}");
            count += 1;
        }
    }
    assert!(count >= 3 * NAMES.len(), "only {count} commands");
}

/// What stands between `DO` and the next label, as it is printed, is a script.
#[track_caller]
fn printed(text: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with("DO"));
    let until = lines.take_while(|line| !line.starts_with("CANNOT TELL"));
    let script: String = until.map(|line| format!("{line}\n")).collect();
    assert!(script.starts_with("DO "), "{text}");
    script.replacen("DO", "  ", 1)
}

#[test]
fn commands_stay_within_the_page_and_run_as_they_are_printed() {
    let long = "a-folder-with-a-long-name/".repeat(5);
    let folder = scratch("pages");
    std::fs::create_dir_all(folder.join(&long)).unwrap();
    std::fs::create_dir_all(folder.join(format!("{long}with blanks in it, and it's long too"))).unwrap();
    for name in [
        "x.hex".to_owned(),
        format!("{long}x.hex"),
        format!("{long}with blanks in it, and it's long too/a very long name of a file that has blanks in it.hex"),
        format!("{long}escapes\x1b[31m\x07and some more letters.hex"),
    ] {
        save(&folder, &name, worn());
        for (columns, locale) in [("40", "C.UTF-8"), ("80", "C.UTF-8"), ("80", "C"), ("120", "C.UTF-8")] {
            let mut study = command();
            study.current_dir(&folder).args(["study", &name]).env("COLUMNS", columns).env("LC_ALL", locale);
            let text = run(study).exits(1).stdout;
            let script = printed(&text);
            let width: usize = columns.parse().unwrap();
            assert!(script.lines().all(|line| line.chars().count() <= width), "{columns}:\n{script}");
            let _ = std::fs::remove_file(folder.join("wear.json"));
            let (code, stderr) = sh(&script, &folder);
            assert!(code != 2 && code < 100, "{columns}: {code} of\n{script}{stderr}");
        }
    }
}

#[test]
fn a_command_for_piped_input_says_to_save_it_and_runs_then() {
    let folder = scratch("piped");
    let study = emmclab_with_input(&["study", "--json"], worn().as_bytes()).exits(1).json();
    let commands = commands(&study);
    assert!(!commands.is_empty());
    save(&folder, "saved-input", worn());
    for command in &commands {
        assert!(command.contains("saved-input") && !command.contains(" - "), "{command}");
        let (code, stderr) = sh(command, &folder);
        assert!(code != 2 && code < 100, "{command}: {code}\n{stderr}");
    }
    let why = study["verdict"]["do"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("first save the input as saved-input; "), "{why}");
    // The same of a name that no shell can hold.
    save(&folder, "line\n", worn());
    let mut study = command();
    study.current_dir(&folder).args(["study", "line\n", "--json"]);
    let study = run(study).exits(1).json();
    assert!(
        study["verdict"]["do"][0]["why"].as_str().unwrap().starts_with("first save a copy"),
        "{}",
        study["verdict"]
    );
}

#[test]
fn redirected_input_is_named_by_its_file() {
    let folder = scratch("redirected");
    let file = save(&folder, "with blank.hex", worn());
    let mut study = command();
    study.args(["study", "--json"]).stdin(std::fs::File::open(&file).unwrap());
    for command in commands(&run(study).exits(1).json()) {
        assert!(command.contains("with blank.hex'"), "{command}");
        let (code, stderr) = sh(&command, &folder);
        assert!(code != 2 && code < 100, "{command}: {code}\n{stderr}");
    }
}

#[test]
fn on_a_narrow_page_answers_are_wrapped_and_rows_are_as_wide_as_their_rule() {
    let mut narrow = command();
    narrow.args(["study", &testdata("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex")]);
    let run_narrow = run({
        narrow.env("COLUMNS", "40");
        narrow
    });
    let lead = run_narrow.stdout.split("Findings").next().unwrap();
    assert!(!lead.contains('…') && run_narrow.words().contains("power-off notice off)"), "{lead}");
    for columns in ["40", "60", "80"] {
        let mut show = command();
        show.args(["show", &testdata("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex")]);
        show.env("COLUMNS", columns);
        let text = run(show).exits(0).stdout;
        let width = columns.parse().unwrap();
        let wide = text.lines().find(|line| line.chars().count() > width && !line.contains("testdata"));
        assert_eq!(wide, None, "{columns}");
        assert!(text.contains("CMDQ_MODE_EN") && text.contains("disabled"), "{text}");
    }
}

/// A notice beside a life that alone would be good says what it is about.
#[test]
fn a_severity_has_its_reason_beside_it() {
    let study = emmclab(["study", "--sysroot", &testdata("sysfs/board"), "mmcblk0"]);
    let line = "notice: 50 % to 60 % of rated life used; reserved blocks normal; errors between host and card";
    assert!(study.words().contains(line), "{}", study.stdout);
    let check = emmclab(["check", "--sysroot", &testdata("sysfs/board"), "mmcblk0"]).exits(0);
    assert!(check.stdout.contains("2 data CRC errors since boot"), "{}", check.stdout);
}

#[cfg(feature = "sim")]
#[test]
fn the_commands_for_a_new_card_run() {
    let folder = scratch("created");
    let mut create = command();
    create.current_dir(&folder).args(["sim", "create", "my card", "sim:generic-8g"]);
    let text = run(create).exits(0).words();
    assert!(text.contains("`emmclab sim info 'my card'`"), "{text}");
    assert_eq!(sh("emmclab sim info 'my card'", &folder).0, 0);
}

#[cfg(feature = "bench")]
#[test]
fn the_command_that_a_bench_prints_restores_after_kill_9() {
    let folder = scratch("printed_restore");
    let before: Vec<u8> = (0..1 << 20).map(|at: usize| (at >> 12) as u8 ^ at as u8).collect();
    for name in NAMES {
        let (file, kept) = (folder.join(name), format!("kept {name}"));
        std::fs::write(&file, &before).unwrap();
        let mut bench = command();
        bench.current_dir(&folder).args(["bench", "--suite", "iozone", "--rows", "64", "--size", "1MiB", "--destroy"]);
        bench.args(["--save-restore", "--save-to", &kept, "--", name]);
        bench.stdout(Stdio::null()).stderr(Stdio::piped());
        let hold = crate::support::hold::Hold::at(&mut bench, "worked", 1, &folder);
        let mut child = bench.spawn().unwrap();
        hold.wait(&mut child);
        child.kill().unwrap();
        let told = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(std::fs::read(&file).unwrap() != before, "{name:?}");
        let printed = told.lines().find_map(|line| line.split_once("after kill -9 or a power cut: "));
        let (_, script) = printed.unwrap_or_else(|| panic!("{name:?}: {told}"));
        let (code, stderr) = sh(script, &folder);
        assert_eq!(code, 0, "{name:?}: {script}\n{stderr}");
        assert!(std::fs::read(&file).unwrap() == before, "{name:?}: {script}");
    }
}
