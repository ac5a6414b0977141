//! The contract with scripts: every key of every JSON document, and the schema of the document.
//!
//! The golden lists in `json_keys` have every key of the documents below. A missing key breaks scripts; a new key is
//! added to the list by hand, or by a run with `EMMCLAB_WRITE_KEYS=1` and a review of the difference.

mod plans;

use crate::keys::documents;
use crate::support::cards::{emmc_cid, s0j56};
use crate::support::{emmclab, save, scratch, testdata};
use serde_json::json;

#[test]
fn show_has_the_documented_keys() {
    let board = testdata("sysfs/board");
    let klm = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    for args in [vec![klm.as_str()], vec!["--sysroot", &board, "mmcblk0"], vec!["--sysroot", &board, "mmcblk1"]] {
        let document = emmclab(["show", "--json", "--all"].into_iter().chain(args)).exits(0).json();
        let fields = document["fields"].as_array().unwrap();
        assert!(fields.len() > 20);
        for field in fields {
            assert!(field["register"].is_string() && field["name"].is_string(), "{field}");
            assert!(field["offset"].is_u64() && field["raw"].is_u64(), "{field}");
            assert!(field.get("value").is_some_and(|value| !value.is_object()), "{field}");
            assert!(field["unit"].is_null() || field["unit"].is_string(), "{field}");
        }
    }
    let sec_count = emmclab(["show", &klm, "--field", "SEC_COUNT", "--json"]).exits(0).json()["fields"].take();
    let expected = [("register", json!("EXT_CSD")), ("name", json!("SEC_COUNT")), ("offset", json!(212))];
    assert_eq!(sec_count.as_array().unwrap().len(), 1);
    for (key, value) in expected.into_iter().chain([("raw", json!(15_269_888)), ("unit", json!("sectors"))]) {
        assert_eq!(sec_count[0][key], value, "{key}");
    }
}

#[test]
fn plan_hwpart_has_the_documented_keys() {
    let folder = scratch("plan");
    let card = save(&folder, "s0j56.bin", s0j56());
    let plan = emmclab(["plan", "hwpart", &card, "--enh-user", "max", "--gp", "1:8MiB", "--json"]).exits(0).json();
    assert_eq!((&plan["ok"], &plan["refusals"]), (&json!(true), &json!([])));
    for key in ["user_sectors", "enh_user_start_sectors", "enh_user_sectors"] {
        assert!(plan["layout"][key].is_u64(), "{key}: {}", plan["layout"]);
    }
    assert_eq!(plan["layout"]["gp_sectors"], json!([16384, 0, 0, 0]));
    let writes = plan["writes"].as_array().unwrap();
    assert!(writes.len() > 5);
    for write in writes {
        for key in ["offset", "old", "new"] {
            assert!(write[key].as_u64().is_some_and(|number| number < 512), "{key}: {write}");
        }
        assert!(write["one_time"].is_boolean(), "{write}");
    }
    // The last write commits it.
    let last = writes.last().unwrap();
    assert_eq!(
        (&last["offset"], &last["old"], &last["new"], &last["one_time"]),
        (&155.into(), &0.into(), &1.into(), &true.into())
    );
    let refused = emmclab(["plan", "hwpart", &card, "--enh-user", "0s:31080448s", "--json"]).exits(4).json();
    assert_eq!((&refused["ok"], &refused["writes"]), (&json!(false), &json!([])));
    let refusal = &refused["refusals"].as_array().unwrap()[0];
    for key in ["rule", "what"] {
        assert!(refusal[key].is_string(), "{refusal}");
    }
}

#[cfg(feature = "schema")]
#[test]
fn a_document_that_breaks_its_schema_is_found() {
    let schema = crate::keys::schema("show");
    let klm = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let document = emmclab(["show", &klm, "--json"]).exits(0).json();
    let broken = |pointer: &str, value: serde_json::Value| {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        crate::support::schema::check(&schema, &document)
    };
    assert_eq!(broken("/tool", json!("other")), Ok(()));
    let mut field = document["fields"][0].clone();
    field.as_object_mut().unwrap().remove("raw");
    assert_eq!(broken("/fields/0", field), Err("$.fields[0]: \"raw\" is missing".into()));
    let mut field = document["fields"][0].clone();
    field["colour"] = json!("red");
    assert_eq!(broken("/fields/0", field), Err("$.fields[0].colour: the schema does not name it".into()));
    for (pointer, value) in [
        ("/schema", json!("emmclab.show/2")),
        ("/fields", json!({})),
        ("/fields/0/raw", json!("0x00")),
        ("/fields/0/raw", json!(-1)),
        ("/fields/0/offset", json!(null)),
        ("/kind", json!("floppy")),
    ] {
        assert!(broken(pointer, value.clone()).is_err(), "{pointer} {value}");
    }
}

#[test]
fn list_documents_keep_their_keys() {
    documents("list", &words_of("list --sysroot {sysfs/board}\nlist --sysroot {sysfs/old-kernel}"));
}

#[test]
fn show_documents_keep_their_keys() {
    let mut all = words_of(
        "show --sysroot {sysfs/board} mmcblk0
        show --sysroot {sysfs/board} mmcblk1
        show --all {ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex}
        show {ext_csd_raw/at91bootstrap-107-partial/at91-107.bytes0-335.partial.hex}
        show {seeds_console/uboot_mmc_info_after_imx8qm.txt}
        show {ids/ac100-mmc32g/csd}",
    );
    all.push(["show".into(), save(&scratch("show_documents"), "cid", emmc_cid(0x13, b"S0J56 "))].to_vec());
    documents("show", &all);
}

#[test]
fn snapshot_documents_keep_their_keys() {
    let all = words_of(
        "snapshot -o - --sysroot {sysfs/board} mmcblk0
        snapshot -o - --sysroot {sysfs/board} mmcblk1
        snapshot -o - {seeds_console/uboot_mmc_info_after_imx8qm.txt}
        snapshot -o - {hwpartition/cisco-hynix-hbg4e/sd_partition.txt} --with {emmcparm/cisco-hynix-hbg4e/emmcparm_V.txt}
        snapshot -o - {seeds_console/fdisk_colibri-imx6s.txt} --with {seeds_console/df_colibri-imx6s.txt}
        snapshot -o - {seeds_console/emmcparm_erase_count.txt}
        snapshot -o - {sdmon/sandisk-ultra-sd128/mmc_cid_csd_read.txt}",
    );
    documents("snapshot", &all);
}

#[test]
fn diff_documents_keep_their_keys() {
    let raw = "{ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex}";
    let all = [
        format!("diff {raw} {{mmc_extcsd_text/samsung-klm-8g/extcsd.txt}}"),
        format!("diff {{ids/samsung-bjnb4r-32g/cid}} {raw}"),
        format!("diff {raw} {raw}"),
    ];
    documents("diff", &all.map(|line| words(&line)));
}

#[test]
fn health_documents_keep_their_keys() {
    let all = words_of(
        "health --sysroot {sysfs/board} mmcblk0 --blocks 1024 --cycles 3000 --write-amplification 2.5
        health --sysroot {sysfs/board} mmcblk1
        health --sysroot {sysfs/old-kernel} mmcblk0
        health {seeds_console/emmcparm_erase_count.txt} --with {seeds_console/emmcparm_sect_count.txt}
        health {seeds_console/emmcparm_spare_block.txt} --with {seeds_console/emmcparm_bad_block.txt}
        health {sdmon/adata-iudd33k-64g/sdmon.json.txt}
        health {sdmon/negative-apacer-ak6-slc-32g/sdmon.json.txt}
        health {ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex} --at 2026-11-01T00:00:00Z \
            --since {ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex}@2024-11-01T00:00:00Z",
    );
    documents("health", &all);
}

#[test]
fn check_documents_keep_their_keys() {
    let all = words_of(
        "check {seeds_console/extcsd_health.txt}
        check --sysroot {sysfs/board} mmcblk0
        check --sysroot {sysfs/board} --all
        check /nonexistent/card",
    );
    documents("check", &all);
}

#[test]
fn plan_hwpart_documents_keep_their_keys() {
    let card = save(&scratch("plan_documents"), "s0j56.bin", s0j56());
    let plan = |rest: &str| words(&format!("plan hwpart {card} {rest}"));
    let all = [
        plan("--enh-user max --gp 1:64MiB --gp 2:8MiB:enh --wrrel on"),
        plan("--enh-user 0s:31080448s"),
        plan("--wrrel user=on"),
    ];
    documents("plan-hwpart", &all);
}

#[test]
fn plan_boot_size_documents_keep_their_keys() {
    let all = words_of(
        "plan boot-size sim:odroid-64g --boot 8MiB --rpmb 8MiB
        plan boot-size sim:apalis-imx8qm-16g --boot 8MiB
        plan boot-size sim:generic-8g --boot 8MiB",
    );
    documents("plan-boot-size", &all);
}

#[test]
fn study_documents_keep_their_keys() {
    let mut all = words_of(
        "study --demo
        study --sysroot {sysfs/board} mmcblk0
        study --sysroot {sysfs/board} mmcblk1
        study {ids/samsung-bjnb4r-32g/cid}
        study {ids/constructed-wrong-checksum/cid}
        study {ext_csd_raw/ac100-mmc32g/ac100-mmc32g.ext_csd.hex}
        study {seeds_console/uboot_mmc_info_after_imx8qm.txt}
        study {seeds_console/fdisk_colibri-imx6s.txt} --with {seeds_console/lsblk_colibri-imx6s.txt} \
            --with {seeds_console/df_colibri-imx6s.txt} --with {seeds_console/wrrel_off_colibri-imx6s.txt}
        study {seeds_console/emmcparm_erase_count.txt} --with {seeds_console/emmcparm_sect_count.txt}
        study {sdmon/adata-iudd33k-64g/sdmon.json.txt} --with {sdmon/unsupported/sdmon.json.txt}",
    );
    all.push(["study".into(), save(&scratch("study_documents"), "s0j56.bin", s0j56())].to_vec());
    #[cfg(feature = "bench")]
    {
        // A card that must go.
        let folder = scratch("study_documents_trust");
        let (card, log) = (save(&folder, "s0j56.bin", s0j56()), save(&folder, "log", "mmc0: Card stuck being busy!\n"));
        let trust = emmclab(["trust", "--registers", &card, "--log", &log, "--json"]).exits(1).stdout;
        all.push(["study".into(), card, "--trust".into(), save(&folder, "trust.json", trust)].to_vec());
    }
    // A card on which requests stall.
    #[cfg(feature = "sim")]
    all.extend(words_of("study sim:intenso-class4-4g\nstudy sim:generic-8g --what-if {what_if/generic-8g.json}"));
    documents("study", &all);
}

#[cfg(feature = "sim")]
#[test]
fn sim_documents_keep_their_keys() {
    let folder = scratch("sim_documents");
    let job = r#"{"phases": [{"kind": "sequential", "amount": "4MiB"}, {"kind": "random", "amount": "1MiB", "read_share": 0.5},
        {"kind": "trim", "share": 0.1}, {"kind": "flush"}]}"#;
    let job = save(&folder, "job.json", job);
    let card = folder.join("card").display().to_string();
    documents("sim-profiles", &[words("sim profiles"), words("sim profiles generic-8g")]);
    documents("sim-create", &[words(&format!("sim create {card} --profile toshiba-7au"))]);
    documents("sim-info", &[words(&format!("sim info {card}")), words("sim info --profile apalis-imx8qm-16g")]);
    documents("sim-check", &[words(&format!("sim check {card}")), words(&format!("sim check {card} --repair"))]);
    documents("sim-pipeline", &[words("sim pipeline --platform zynq-zed --requests 50 --tables")]);
    documents("sim-power-cut", &[words("sim power-cut --profile generic-8g --cuts 20")]);
    let run = |rest: &str| words(&format!("sim run --job {job} {rest}"));
    documents("sim-run", &[run(&card), run("--profile generic-8g")]);
}

#[cfg(all(feature = "bench", feature = "sim"))]
#[test]
fn bench_documents_keep_their_keys() {
    documents(
        "bench",
        &words_of(
            "bench sim:generic-8g --suite iozone --rows 128 --size 8MiB
            bench sim:sandisk-20au --suite iozone --rows 16 --size 1MiB
            bench sim:generic-8g --suite speed --size 16MiB
            bench sim:generic-8g --suite boot --size 160MiB
            bench sim:generic-8g --suite tiotest --size 4MiB --host zynq-zed
            bench sim:generic-8g --suite replay --trace {block_traces/fio_iolog_v3.log} --wrap",
        ),
    );
    documents("suites", &[words("bench --list")]);
    documents("probe", &["toshiba-7au", "generic-8g"].map(|part| words(&format!("probe sim:{part} --write"))));
}

#[cfg(feature = "bench")]
#[test]
fn compare_documents_keep_their_keys() {
    let results = "{bench_results/fio_3.33_mixed.json} {bench_results/fio_3.33_mixed.json} ref:jetson-tx1";
    let mut all = vec![words("compare ref:colibri-t30-mlc ref:colibri-t30-pslc"), words(&format!("compare {results}"))];
    if cfg!(feature = "sim") {
        let folder = scratch("compare_documents");
        let own = ["1", "2"].map(|seed| {
            let run = emmclab([
                "bench",
                "sim:generic-8g",
                "--suite",
                "iozone",
                "--rows",
                "4",
                "--size",
                "4MiB",
                "--seed",
                seed,
                "--json",
            ]);
            save(&folder, &format!("{seed}.json"), run.exits(0).stdout)
        });
        all.push(["compare".to_owned()].into_iter().chain(own).collect());
    }
    documents("compare", &all);
}

#[cfg(feature = "bench")]
#[test]
fn import_documents_keep_their_keys() {
    let all = words_of(
        "import {bench_results/fio_3.33_mixed.json}
        import {bench_results/flashbench_62.txt}
        import {seeds_console/t30_bonnie_dd_after.txt}",
    );
    documents("import", &all);
    documents("references", &[words("compare --list")]);
}

#[cfg(feature = "serve")]
#[test]
fn lab_documents_keep_their_keys() {
    let Some(kernel) = crate::lab::kernel() else { return };
    let folder = scratch("lab_documents");
    let script = "dd if=/dev/zero of=$DEVICE bs=4k count=4 conv=fsync status=none; figure a 1\n";
    let script = save(&folder, "a.sh", script);
    let job = save(&folder, "job.fio", "[a]\nrw=read\nbs=4k\nsize=16k\ndirect=1\n");
    let lab = |what: &str| words(&format!("lab {what} --kernel {kernel} --card generic-8g"));
    documents("lab-run", &[[lab("run"), words(&format!("--script {script}"))].concat()]);
    let sweep = |script: &str, more: &str| [lab("sweep"), words(&format!("--script {script} {more}"))].concat();
    documents("lab-calibrate", &[words(&format!("lab calibrate --kernel {kernel} --cpu-ns 2"))]);
    documents("lab-sweep", &[sweep(&job, "--env A=1 --scheduler absent --scheduler none"), sweep(&script, "")]);
}

#[cfg(feature = "trace")]
#[test]
fn trace_documents_keep_their_keys() {
    let all = words_of(
        "trace analyse {traces/mmc_dwrite_4096.dat}
        trace analyse {traces/blk_dwrite_4096.blktrace.0} {traces/blk_dwrite_4096.blktrace.1}
        trace analyse {traces/reliable_write_io_sched.ftrace.txt}",
    );
    documents("trace-analyse", &all);
    let direct = "{traces/mmc_dwrite_4096.dat}";
    documents("trace-compare", &[words(&format!("trace compare {direct} {direct}"))]);
    let folder = scratch("trace_documents");
    let folder_name = folder.display();
    let export = |form: &str, name: &str| words(&format!("trace export {direct} {form} -o {folder_name}/{name}"));
    let text = save(&folder, "who.txt", crate::trace_who::TEXT);
    documents("trace-who", &[words(&format!("trace who {text}"))]);
    documents("trace-boot", &[words(&format!("trace record --at-boot --kernel 6.1 --root {folder_name}/root"))]);
    documents("trace-export", &[export("--csv", "t.csv"), export("--chrome", "t.json")]);
}

/// The arguments on each line, `{PATH}` being a file of testdata.
fn words_of(lines: &str) -> Vec<Vec<String>> {
    lines.lines().map(words).collect()
}

pub(crate) fn words(line: &str) -> Vec<String> {
    let word = |word: &str| match word.split_once('}') {
        Some((path, rest)) => testdata(&path[1..]) + rest,
        None => word.to_owned(),
    };
    line.split_whitespace().map(word).collect()
}
