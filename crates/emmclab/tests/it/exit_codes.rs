//! Exit codes for scripts: 0 good, 1 findings, 2 usage or unreadable, 3 unknown, 4 refused; `check` uses the codes of
//! monitoring systems.

use crate::support;
use crate::support::cards::{ext_csd, s0j56};
use crate::support::{Run, command, emmclab, emmclab_with_input, run, save, scratch, testdata};

const KLM: &str = "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";

/// An eMMC 5.1 with these health registers: PRE_EOL_INFO, life time A and B.
fn worn(pre_eol: u32, life_a: u32, life_b: u32) -> [u8; 512] {
    ext_csd(&[(192, 1, 8), (196, 1, 0x57), (212, 4, 15_269_888), (267, 1, pre_eol), (268, 1, life_a), (269, 1, life_b)])
}

#[test]
fn exit_code_0_is_good() {
    let klm = testdata(KLM);
    let board = testdata("sysfs/board");
    emmclab(["show", &klm]).exits(0).says(&["SEC_COUNT", "CMDQ_SUPPORT"]);
    emmclab(["show", "--sysroot", &board, "/dev/mmcblk1"]).exits(0).says(&["SD16G"]);
    emmclab(["diff", &klm, &klm]).exits(0).says(&["No difference"]);
    emmclab(["health", &klm]).exits(0).says(&["0 % to 10 % of life used"]);
    emmclab(["study", "--demo", "--full"]).exits(0).says(&["eMMC 5.1", "Hardware partitioning"]);
    emmclab(["list", "--sysroot", &board]).exits(0).says(&["/dev/mmcblk0", "BJNB4R"]);
    emmclab(["plan", "hwpart", &klm, "--enh-user", "max"]).exits(0).says(&["the plan can be executed"]);
    for args in [["--help"], ["--version"], ["help"]] {
        let help = emmclab(args).exits(0);
        assert!(!help.stdout.is_empty() && help.stderr.is_empty(), "{help:?}");
    }
    let input = emmclab_with_input(&["show", "-", "--field", "SEC_COUNT", "--raw"], &std::fs::read(&klm).unwrap());
    assert_eq!(input.exits(0).stdout, "0x00e90000\n");
}

#[test]
fn exit_code_1_is_findings() {
    let folder = scratch("findings");
    let klm = testdata(KLM);
    emmclab(["diff", &klm, &testdata("mmc_extcsd_text/samsung-klm-8g/extcsd.txt")]).exits(1).says(&["HPI_MGMT"]);
    let past = save(&folder, "past.bin", worn(3, 0x0b, 0x01));
    emmclab(["health", &past]).exits(1).says(&["past 100 %"]);
    emmclab(["study", &past]).exits(1).says(&["critical"]);
    let off = testdata("seeds_console/wrrel_off_colibri-imx6s.txt");
    emmclab(["study", &off]).exits(1).says(&["warning", "Write reliability is off"]);
}

#[test]
fn exit_code_2_is_usage_or_unreadable_input() {
    let klm = testdata(KLM);
    for args in [
        &["bogus"] as &[&str],
        &["show"],
        &["show", &klm, "--bogus"],
        &["show", &klm, "--field", "NO_SUCH_FIELD"],
        &["diff", &klm],
        &["diff", "-", "-"],
        &["health", &klm, "--blocks", "1024"],
        &["health", &klm, "--blocks", "1024", "--cycles", "3000", "--block-size", "50%"],
        &["health", &klm, "--vendor-health"],
        &["study", "--vendor-health", "--demo"],
        &["study", "--sysroot", &testdata("sysfs/board")],
        &["health", &klm, "--since", &klm],
        &["health", &klm, "--at", "yesterday"],
        &["health", &klm, "--vendor-reply", "reply.bin"],
        &["plan", "hwpart", &klm],
        &["plan", "hwpart", &klm, "--wrrel", "maybe"],
        &["plan", "hwpart", &klm, "--gp", "5:8MiB"],
        &["show", "/nonexistent/extcsd.bin"],
        &["show", &klm, "--with", "/nonexistent/cid"],
        &["list", "--sysroot", "/nonexistent"],
        &["show", "/dev/mmcblk250"],
    ] {
        let run = emmclab(args).exits(2);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
    }
    emmclab([] as [&str; 0]).exits(2);
}

#[test]
fn a_copied_tree_is_never_opened_as_a_live_card() {
    let board = testdata("sysfs/board");
    for verb in ["health", "study"] {
        let run = emmclab([verb, "--sysroot", &board, "mmcblk0", "--vendor-health"]).exits(2);
        assert!(run.stderr.contains("--sysroot reads a copy"), "{run:?}");
    }
}

#[test]
fn exit_code_3_is_not_supported_or_unknown() {
    let text = testdata("seeds_console/extcsd_health.txt");
    let field = emmclab(["show", &text, "--field", "SEC_COUNT"]).exits(3);
    assert_eq!(field.stderr, format!("emmclab: {text}: SEC_COUNT: this source does not contain it\n"));
    #[cfg(not(feature = "sim"))]
    for args in [&["show", "sim:s0j56"] as &[&str], &["study", "sim:s0j56"], &["snapshot", "sim:s0j56", "-o", "-"]] {
        let run = emmclab(args).exits(3);
        assert!(run.stderr.starts_with("emmclab: sim:s0j56: not supported: "), "{run:?}");
    }
    emmclab(["health", &testdata("ids/samsung-bjnb4r-32g/cid")]).exits(3).says(&["wear is unknown"]);
    // Nothing that both know: that is no agreement.
    emmclab(["diff", &testdata(KLM), &testdata("ids/samsung-bjnb4r-32g/cid")]).exits(3);
    let zero = save(&scratch("undefined"), "zero.bin", worn(0, 0, 0));
    emmclab(["health", &zero]).exits(3).says(&["unknown"]);
}

#[test]
fn exit_code_4_is_a_refusal_for_safety() {
    let card = save(&scratch("refused"), "s0j56.bin", s0j56());
    for args in [["--enh-user", "0s:31080448s"], ["--gp", "1:1s"], ["--enh-user", "1s:8MiB"]] {
        emmclab(["plan", "hwpart", &card].into_iter().chain(args)).exits(4).says(&["refused"]);
    }
    let sd = [&testdata("sysfs/board"), "mmcblk1"];
    emmclab(["plan", "hwpart", "--enh-user", "max", "--sysroot", sd[0], sd[1]]).exits(4).says(&["an SD card"]);
}

/// One line on standard output in every case.
fn check(args: &[&str]) -> Run {
    let run = emmclab(["check"].iter().chain(args));
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    assert!(run.stderr.is_empty(), "{run:?}");
    run
}

#[test]
fn check_uses_monitoring_exit_codes() {
    let folder = scratch("check");
    for (registers, code, word) in [
        ((1, 0x02, 0x01), 0, "EMMC OK - "),
        ((1, 0x0a, 0x01), 1, "EMMC WARNING - "),
        ((2, 0x01, 0x01), 1, "EMMC WARNING - "),
        ((1, 0x01, 0x0b), 2, "EMMC CRITICAL - "),
        ((3, 0x01, 0x01), 2, "EMMC CRITICAL - "),
        ((0, 0x00, 0x00), 3, "EMMC UNKNOWN - "),
    ] {
        let card = save(&folder, "card.bin", worn(registers.0, registers.1, registers.2));
        let run = check(&[&card]).exits(code);
        assert!(run.stdout.starts_with(word), "{registers:?}: {}", run.stdout);
        let json = emmclab(["check", &card, "--json"]).exits(code).json();
        assert_eq!(
            (json["exit_code"].as_i64(), json["line"].as_str()),
            (Some(code.into()), Some(run.stdout.trim_end()))
        );
    }
    let card = save(&folder, "card.bin", worn(1, 0x05, 0x01));
    check(&[&card]).exits(0);
    check(&[&card, "--warning", "40"]).exits(1);
    check(&[&card, "-w", "30", "-c", "40"]).exits(2);
    check(&[&card, "-w", "90", "-c", "40"]).exits(3);
    check(&["/nonexistent/card"]).exits(3).says(&["EMMC UNKNOWN - /nonexistent/card: cannot read"]);
    check(&["sim:s0j56"]).exits(3);
    check(&[&testdata("seeds_console/t30_bonnie_dd_after.txt")]).exits(3);
}

#[test]
fn a_usage_error_of_check_is_unknown_and_not_critical() {
    for args in [&["check"] as &[&str], &["check", "--bogus"], &["--color", "never", "check"], &["check", "--all", "x"]]
    {
        emmclab(args).exits(3).says(&["EMMC UNKNOWN - "]);
    }
    for args in [&["--json", "check"] as &[&str], &["check", "-J", "--bogus"]] {
        let document = emmclab(args).exits(3).json();
        assert_eq!(document["schema"], "emmclab.check/1");
        assert_eq!(document["status"], "unknown");
        assert!(document["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{document}");
    }
    emmclab(["check", "--help"]).exits(0);
    emmclab(["show", "check", "--bogus"]).exits(2);
}

#[test]
fn with_json_an_error_is_one_object() {
    for args in [
        &["--json", "show", "/nonexistent/a"] as &[&str],
        &["show", "--json", "--bogus"],
        &["plan", "hwpart", "-J", "card", "--gp", "1:100"],
    ] {
        let run = emmclab(args);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stdout.is_empty() && run.stderr.starts_with(r#"{"schema":"emmclab.error/1","error":""#), "{run:?}");
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        let message = error["error"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains('\n') && !message.starts_with("error"), "{message}");
    }
}

#[test]
fn a_failing_output_is_reported() {
    let klm = testdata(KLM);
    for (args, code) in [(["show", &klm], 2), (["study", &klm], 2), (["check", &klm], 3)] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let Ok(full) = full else { return support::skip("no /dev/full here") };
        let mut command = command();
        command.args(args);
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(code == 3 || stderr.starts_with("emmclab: standard output: cannot write: "), "{stderr}");
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = command();
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let run = run(command).exits(2);
    assert!(run.stderr.starts_with("emmclab: "), "{run:?}");
}

/// A copied /sys with cards of these names, `life_time` values and EXT_CSD revisions.
fn machine(test: &str, cards: &[(&str, &str)]) -> String {
    let root = scratch(test);
    std::fs::create_dir_all(root.join("sys/block")).unwrap();
    for (name, life_time) in cards {
        let device = root.join("sys/block").join(name).join("device");
        std::fs::create_dir_all(&device).unwrap();
        for (attribute, value) in
            [("type", "MMC"), ("name", "TEST01"), ("rev", "0x8"), ("life_time", life_time), ("pre_eol_info", "0x01")]
        {
            save(&device, attribute, format!("{value}\n"));
        }
    }
    root.to_str().unwrap().to_owned()
}

#[test]
fn check_all_prints_one_line_per_card_and_exits_with_the_worst() {
    let root = machine("all", &[("mmcblk0", "0x01 0x02"), ("mmcblk1", "0x0b 0x01"), ("mmcblk2", "0x01 0x0a")]);
    let run = emmclab(["check", "--all", "--sysroot", &root]).exits(2);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let starts = ["EMMC CRITICAL - mmcblk1: past 100 %", "EMMC WARNING - mmcblk2: ", "EMMC OK - mmcblk0: 0 % to 10 %"];
    assert_eq!(lines.len(), starts.len(), "{run:?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{run:?}");
    }
    // All values are on the first line, for a plugin's further lines have none.
    assert_eq!(run.stdout.matches('|').count(), 1, "{run:?}");
    for label in ["mmcblk0_life_b_used_lower=10%", "mmcblk1_life_a_used_lower=100%", "mmcblk2_pre_eol=1;1;2"] {
        assert!(lines[0].contains(label), "no {label} in {run:?}");
    }
    let document = emmclab(["check", "--all", "--json", "--sysroot", &root]).exits(2).json();
    assert_eq!((document["status"].as_str(), document["line"].as_str()), (Some("critical"), Some(lines[0])));
    let cards = document["cards"].as_array().unwrap();
    let of = |key: &str| cards.iter().map(|card| card[key].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("device"), ["/dev/mmcblk1", "/dev/mmcblk2", "/dev/mmcblk0"]);
    assert_eq!(of("status"), ["critical", "warning", "ok"]);
    assert_eq!(of("name"), ["TEST01"; 3]);
}

#[test]
fn a_machine_without_a_card_or_a_folder_without_sys_is_unknown() {
    let none = machine("no_card", &[]);
    emmclab(["check", "--all", "--sysroot", &none]).exits(3).says(&["EMMC UNKNOWN - no card found"]);
    let folder = scratch("no_sys");
    emmclab(["check", "--all", "--sysroot", folder.to_str().unwrap()]).exits(3).says(&["EMMC UNKNOWN - "]);
}

#[test]
fn quiet_is_silent_only_if_all_is_ok() {
    let folder = scratch("quiet");
    let quiet = |args: &[&str]| emmclab(["check", "-q"].iter().chain(args));
    let good = save(&folder, "good.bin", worn(1, 1, 1));
    let run = quiet(&[&good]).exits(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{run:?}");
    let worn = save(&folder, "worn.bin", worn(1, 0x0b, 1));
    quiet(&[&worn]).exits(2).says(&["EMMC CRITICAL - "]);
    quiet(&["/nonexistent/a"]).exits(3).says(&["EMMC UNKNOWN - "]);
    let root = machine("quiet_all", &[("mmcblk0", "0x01 0x02"), ("mmcblk1", "0x0a 0x01")]);
    let run = quiet(&["--all", "--sysroot", &root]).exits(1);
    assert!(run.stdout.lines().count() == 1 && run.stdout.starts_with("EMMC WARNING - mmcblk1: "), "{run:?}");
    let run = quiet(&["--all", "--sysroot", &machine("quiet_good", &[("mmcblk0", "0x01 0x02")])]).exits(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn json_of_check_names_the_source_also_on_errors() {
    let folder = scratch("json");
    let good = save(&folder, "good.bin", worn(1, 1, 1));
    let document = emmclab(["check", "--json", &good]).exits(0).json();
    assert_eq!((document["source"].as_str(), document["reason"].as_str()), (Some(good.as_str()), None));
    let run = emmclab(["check", "--json", "--sysroot", &testdata("sysfs/board"), "mmcblk0"]).json();
    assert_eq!((run["source"].as_str(), run["device"].as_str()), (Some("mmcblk0"), Some("/dev/mmcblk0")));
    for (args, source) in [
        (&["/nonexistent/a"] as &[&str], Some("/nonexistent/a")),
        (&["-w", "90", "-c", "40", &good], Some(good.as_str())),
        (&["--all", "--sysroot", "/nonexistent"], Some("/nonexistent")),
    ] {
        let run = emmclab(["check", "--json"].iter().chain(args)).exits(3);
        assert!(run.stderr.is_empty(), "{run:?}");
        let document = run.json();
        assert_eq!((&document["schema"], &document["status"]), (&"emmclab.check/1".into(), &"unknown".into()));
        assert_eq!((document["source"].as_str(), document["exit_code"].as_u64()), (source, Some(3)));
        let (line, reason) = (document["line"].as_str().unwrap(), document["reason"].as_str().unwrap());
        assert_eq!(line, format!("EMMC UNKNOWN - {reason}"));
    }
}
