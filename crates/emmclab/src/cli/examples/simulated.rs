//! Examples of virtual cards: simulated, served, and under a real Linux.

use super::{Example, example};

pub(super) const EXAMPLES: &[Example] = &[
    #[cfg(feature = "sim")]
    example("sim profiles", "emmclab sim profiles", "the parts that can be simulated"),
    #[cfg(feature = "sim")]
    example("sim profiles", "emmclab sim profiles generic-8g > mine.toml", "a profile as a file, to edit"),
    #[cfg(feature = "sim")]
    example("sim create", "emmclab sim create card1 sim:generic-8g", "a new card in the folder card1"),
    #[cfg(feature = "sim")]
    example("sim create", "emmclab sim create card2 sim:generic-8g@60%", "a card with 60 % of its life used"),
    #[cfg(feature = "sim")]
    example("sim run", "emmclab sim run sim:generic-8g --job steady-random", "a shipped job on a new card"),
    #[cfg(feature = "sim")]
    example("sim run", "emmclab sim run card1 --job job.json", "your own job; card1 ages by it"),
    #[cfg(feature = "sim")]
    example("sim info", "emmclab sim info card1", "areas, wear and blocks of a card in a folder"),
    #[cfg(feature = "sim")]
    example("sim info", "emmclab sim info sim:odroid-64g --json", "the same of a new card, for a script"),
    #[cfg(feature = "sim")]
    example("sim check", "emmclab sim check card1", "which files of a card's folder are whole"),
    #[cfg(feature = "sim")]
    example("sim check", "emmclab sim check card1 --repair", "go on with what is whole; the rest is set aside"),
    #[cfg(feature = "sim")]
    example("sim power-cut", "emmclab sim power-cut sim:generic-8g", "100 cuts: does it keep its guarantees?"),
    #[cfg(feature = "sim")]
    example("sim power-cut", "emmclab sim power-cut sim:generic-8g --cuts 1 --seed 17", "repeat one run by its seed"),
    #[cfg(feature = "twin")]
    example(
        "sim what-if",
        "emmclab sim what-if sim:generic-8g --rate 2GB/day --change pslc=all --change cache=off",
        "two changes beside today",
    ),
    #[cfg(feature = "twin")]
    example(
        "sim what-if",
        "emmclab sim what-if sim:my-part.toml --workload app.blkparse --change discard=off,depth=8",
        "your recording on your twin, two settings together",
    ),
    #[cfg(feature = "twin")]
    example("sim life", "emmclab sim life sim:generic-8g --workload 2GB/day,random=70%", "until the card is read-only"),
    #[cfg(feature = "twin")]
    example(
        "sim life",
        "emmclab sim life sim:generic-8g --rate 1GB/day --fs ext4 --json",
        "through ext4, for a script",
    ),
    #[cfg(feature = "twin")]
    example("advise part", "emmclab advise part --workload 2GB/day,random=50%,data=1GiB", "every shipped part"),
    #[cfg(feature = "twin")]
    example(
        "advise part",
        "emmclab advise part --rate 500MB/day --among generic-8g pine64-64g --years 10",
        "two parts that must live ten years",
    ),
    #[cfg(feature = "sim")]
    example("sim pipeline", "emmclab sim pipeline --board jetson-tx1", "where a request's time goes on this board"),
    #[cfg(feature = "sim")]
    example("sim pipeline", "emmclab sim pipeline --pre 90 --hw 635 --post 50 --chunk 128KiB", "with your own spans"),
    #[cfg(feature = "serve")]
    example("sim ctl cut", "emmclab sim ctl card1 cut", "cut the power now"),
    #[cfg(feature = "serve")]
    example(
        "sim ctl cut",
        "emmclab sim ctl card1 cut --at-operation 1000 --seed 7",
        "cut it within a program or erase operation",
    ),
    #[cfg(feature = "serve")]
    example("sim ctl on", "emmclab sim ctl card1 on", "switch the power on again"),
    #[cfg(feature = "serve")]
    example("sim ctl reset", "emmclab sim ctl card1 reset", "RST_n"),
    #[cfg(feature = "serve")]
    example(
        "sim ctl inject",
        "emmclab sim ctl card1 inject --kind read --from 1MiB --to 2MiB --times 3",
        "three bad reads",
    ),
    #[cfg(feature = "serve")]
    example("sim ctl inject-host", "emmclab sim ctl card1 inject-host data-crc --command 25", "every CMD25 fails"),
    #[cfg(feature = "serve")]
    example("sim ctl clear-faults", "emmclab sim ctl card1 clear-faults", "remove the injected faults"),
    #[cfg(feature = "serve")]
    example("sim ctl state", "emmclab sim ctl card1 state --json", "wear, mapping, open blocks"),
    #[cfg(feature = "serve")]
    example("sim ctl speed", "emmclab sim ctl card1 speed 10", "ten times slower from now on"),
    #[cfg(feature = "serve")]
    example("sim ctl stats", "emmclab sim ctl card1 stats", "requests, latencies, lateness"),
    #[cfg(feature = "serve")]
    example("sim ctl stop", "emmclab sim ctl card1 stop", "save the card and end the server"),
    #[cfg(feature = "serve")]
    example("serve", "emmclab serve card1 --nbd 10809", "its areas as network block devices on loopback"),
    #[cfg(feature = "serve")]
    example("serve", "emmclab serve card1 --fuse mnt --loop", "as files in mnt, and a loop device for each"),
    #[cfg(feature = "serve")]
    example("serve", "emmclab serve card1 --vfio-user /tmp/sdhci.socket", "as an SD host controller for QEMU"),
    example("serve", "emmclab serve card1 --uml /tmp/uml", "as one for a User-Mode Linux, both in simulated time"),
    #[cfg(feature = "serve")]
    example("lab run", "emmclab lab run --card generic-8g --script job.fio", "a fio job on a new card"),
    #[cfg(feature = "serve")]
    example(
        "lab run",
        "emmclab lab run --card card1 --script work.sh --filesystem ext4 --mount noatime --json",
        "a script on ext4",
    ),
    #[cfg(feature = "serve")]
    example(
        "lab sweep",
        "emmclab lab sweep --card generic-8g --script job.fio --controller cqe --controller no-cqe",
        "with command queueing and without",
    ),
    #[cfg(feature = "serve")]
    example(
        "lab sweep",
        "emmclab lab sweep --card generic-8g --script a.sh --filesystem ext4 --commit 5 --commit 30",
        "two commit intervals, for a script",
    ),
    example("lab calibrate", "emmclab lab calibrate --cpu-ns 4 -o host.toml", "the lab's host for bench --host"),
];
