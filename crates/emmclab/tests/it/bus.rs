//! `bus` without a card: what it refuses. With one: `cargo xtask guest test bus`.

use crate::support::emmclab;

#[test]
fn only_a_card_has_a_bus() {
    for (place, code, says) in [
        ("/no/such/place", 3, "/no/such/place: "),
        ("/proc", 3, "/proc: "),
        ("/dev/null", 3, "/dev/null: "),
        ("mmcblk987", 3, "mmcblk987: "),
    ] {
        let error = emmclab(["bus", place, "--time", "1s", "--lower"]).exits(code).stderr;
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn clocks_and_times_have_units_and_bounds() {
    for (option, value, says) in [
        ("--clock", "150", "150MHz"),
        ("--clock", "fastMHz", "150MHz"),
        ("--clock", "100MHz,-1MHz", "150MHz"),
        ("--clock", "2000MHz", "150MHz"),
        ("--time", "10", "10s"),
        ("--time", "0s", "1ms"),
    ] {
        let error = emmclab(["bus", "mmcblk0", option, value]).exits(2).stderr;
        assert!(error.contains(says), "{option} {value}: {error}");
    }
}
