//! The exit code is the answer that a script reads: 0 good, 1 findings, 2 usage or unreadable, 3 unknown, 4 refused;
//! `check` speaks a monitoring system's codes instead.

use crate::support;
use crate::support::cards::{ext_csd, s0j56};
use crate::support::{Run, command, emmclab, emmclab_with_input, run, save, scratch, testdata};

const KLM: &str = "ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";

/// An eMMC 5.1 with these health registers: PRE_EOL_INFO, life time A and B.
fn worn(pre_eol: u32, life_a: u32, life_b: u32) -> [u8; 512] {
    ext_csd(&[(192, 1, 8), (196, 1, 0x57), (212, 4, 15_269_888), (267, 1, pre_eol), (268, 1, life_a), (269, 1, life_b)])
}

#[test]
fn zero_is_good() {
    let klm = testdata(KLM);
    let board = testdata("sysfs/board");
    emmclab(["show", &klm]).exits(0).says(&["SEC_COUNT", "CMDQ_SUPPORT"]);
    emmclab(["show", "--sysroot", &board, "/dev/mmcblk1"]).exits(0).says(&["SD16G"]);
    emmclab(["diff", &klm, &klm]).exits(0).says(&["No difference"]);
    emmclab(["health", &klm]).exits(0).says(&["0 % to 10 % of life used"]);
    emmclab(["study", "--demo"]).exits(0).says(&["eMMC 5.1", "Hardware partitioning"]);
    emmclab(["list", "--sysroot", &board]).exits(0).says(&["/dev/mmcblk0", "BJNB4R"]);
    emmclab(["plan", "hwpart", &klm, "--enh-user", "max"]).exits(0).says(&["the plan can be carried out"]);
    for args in [["--help"], ["--version"], ["help"]] {
        let help = emmclab(args).exits(0);
        assert!(!help.stdout.is_empty() && help.stderr.is_empty(), "{help:?}");
    }
    let input = emmclab_with_input(&["show", "-", "--field", "SEC_COUNT", "--raw"], &std::fs::read(&klm).unwrap());
    assert_eq!(input.exits(0).stdout, "0x00e90000\n");
}

#[test]
fn one_is_findings() {
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
fn two_is_usage_or_unreadable_input() {
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
fn a_copied_tree_is_never_asked_as_if_it_were_live() {
    let board = testdata("sysfs/board");
    for verb in ["health", "study"] {
        let run = emmclab([verb, "--sysroot", &board, "mmcblk0", "--vendor-health"]).exits(2);
        assert!(run.stderr.contains("--sysroot reads a copy"), "{run:?}");
    }
}

#[test]
fn three_is_not_supported_or_unknown() {
    let text = testdata("seeds_console/extcsd_health.txt");
    let field = emmclab(["show", &text, "--field", "SEC_COUNT"]).exits(3);
    assert_eq!(field.stderr, format!("emmclab: {text}: SEC_COUNT: this source does not tell it\n"));
    #[cfg(not(feature = "sim"))]
    for args in [&["show", "sim:s0j56"] as &[&str], &["study", "sim:s0j56"], &["snapshot", "sim:s0j56", "-o", "-"]] {
        let run = emmclab(args).exits(3);
        assert!(run.stderr.starts_with("emmclab: sim:s0j56: not supported: "), "{run:?}");
    }
    emmclab(["health", &testdata("ids/samsung-bjnb4r-32g/cid")]).exits(3).says(&["wear cannot be told"]);
    // Nothing that both know: that is no agreement.
    emmclab(["diff", &testdata(KLM), &testdata("ids/samsung-bjnb4r-32g/cid")]).exits(3);
    let zero = save(&scratch("undefined"), "zero.bin", worn(0, 0, 0));
    emmclab(["health", &zero]).exits(3).says(&["unknown"]);
}

#[test]
fn four_is_refused_for_safety() {
    let card = save(&scratch("refused"), "s0j56.bin", s0j56());
    for args in [["--enh-user", "0s:31080448s"], ["--gp", "1:1s"], ["--enh-user", "1s:8MiB"]] {
        emmclab(["plan", "hwpart", &card].into_iter().chain(args)).exits(4).says(&["refused"]);
    }
    let sd = [&testdata("sysfs/board"), "mmcblk1"];
    emmclab(["plan", "hwpart", "--enh-user", "max", "--sysroot", sd[0], sd[1]]).exits(4).says(&["an SD card"]);
}

/// One line on standard output, whatever happened.
fn check(args: &[&str]) -> Run {
    let run = emmclab(["check"].iter().chain(args));
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    assert!(run.stderr.is_empty(), "{run:?}");
    run
}

#[test]
fn check_speaks_the_monitoring_systems_codes() {
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
    for args in [&["check"] as &[&str], &["check", "--bogus"], &["--color", "never", "check"], &["--json", "check"]] {
        emmclab(args).exits(3);
    }
    emmclab(["check", "--help"]).exits(0);
    emmclab(["show", "check", "--bogus"]).exits(2);
}

#[test]
fn under_json_an_error_is_one_object() {
    for args in [
        &["--json", "show", "/nonexistent/a"] as &[&str],
        &["show", "--json", "--bogus"],
        &["plan", "hwpart", "-J", "card", "--gp", "1:100"],
        &["check", "--json", "/nonexistent/a"],
    ] {
        let run = emmclab(args);
        assert!(run.code == 2 || run.args.starts_with("check") && run.code == 3, "{run:?}");
        assert!(run.stdout.is_empty() && run.stderr.starts_with(r#"{"schema":"emmclab.error/1","error":""#), "{run:?}");
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        let message = error["error"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains('\n') && !message.starts_with("error"), "{message}");
    }
}

#[test]
fn an_output_that_takes_nothing_is_said() {
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
fn an_argument_that_is_no_text_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = command();
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let run = run(command).exits(2);
    assert!(run.stderr.starts_with("error: "), "{run:?}");
}
