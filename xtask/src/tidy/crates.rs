//! Rules that hold between crates.

use crate::metadata::Package;

/// Dependencies point from a later line to an earlier one: ARCHITECTURE.md.
const ORDER: [&[&str]; 12] = [
    &["emmc-units"],
    &["emmc-regs"],
    &["emmc-port"],
    &["emmc-card", "emmc-clone", "emmc-host"],
    &["emmc-sim", "emmc-trace", "emmc-torture"],
    &["emmc-workload"],
    &["emmc-probe", "emmc-twin"],
    &["emmc-analysis"],
    &["emmc-report"],
    &["emmc-linux", "emmc-serve"],
    &["emmc-lab"],
    &["emmclab", "emmc-compare", "emmc-guest", "emmc-qemu"],
];

const MSRV: &str = "1.85";
const EDITION: &str = "2024";
const LICENSE: &str = "MIT OR Apache-2.0";
/// What is loaded into QEMU becomes one work with it, under version 2 of the GPL, which the Apache licence does not
/// permit.
const INSIDE_QEMU: (&str, &str) = ("emmc-qemu", "MIT");

/// Everything wrong with the workspace's packages.
pub(crate) fn check(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(|package| fields(package).into_iter().chain(directions(package))).collect()
}

fn fields(package: &Package) -> Vec<String> {
    let fields = [
        ("rust-version", &package.rust_version, MSRV),
        ("edition", &package.edition, EDITION),
        ("license", &package.license, if package.name == INSIDE_QEMU.0 { INSIDE_QEMU.1 } else { LICENSE }),
    ];
    let wrong = fields.into_iter().filter(|(_, found, expected)| found != expected);
    wrong
        .map(|(field, found, expected)| format!("{}: {field} is {found:?}; expected {expected:?}", package.name))
        .collect()
}

fn directions(package: &Package) -> Vec<String> {
    let level = |name: &str| ORDER.iter().position(|crates| crates.contains(&name));
    let Some(own) = level(&package.name) else {
        // Tools of the repository are no part of the product; no crate depends on them.
        let product = package.name.starts_with("emmc");
        return if product {
            vec![format!("{}: has no place in the order of crates", package.name)]
        } else {
            Vec::new()
        };
    };
    let against = |dependency: &&String| level(dependency).is_some_and(|other| other >= own);
    let message =
        |dependency: &String| format!("{} depends on {dependency}, against the order of crates", package.name);
    package.dependencies.iter().filter(against).map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.into(),
            rust_version: MSRV.into(),
            edition: EDITION.into(),
            license: LICENSE.into(),
            dependencies: dependencies.iter().map(|name| name.to_string()).collect(),
        }
    }

    #[test]
    fn dependencies_point_one_way() {
        assert_eq!(check(&[package("emmc-linux", &["emmc-port", "libc"])]), [] as [&str; 0]);
        assert_eq!(check(&[package("xtask", &["anyhow"])]), [] as [&str; 0]);
        for (name, dependency) in
            [("emmc-regs", "emmc-port"), ("emmc-report", "emmc-linux"), ("emmc-card", "emmc-trace")]
        {
            let violations = check(&[package(name, &[dependency])]);
            assert_eq!(violations, [format!("{name} depends on {dependency}, against the order of crates")]);
        }
        assert_eq!(check(&[package("emmc-new", &[])]), ["emmc-new: has no place in the order of crates"]);
    }

    #[test]
    fn every_crate_states_what_it_needs() {
        let bare = Package { name: "xtask".into(), ..Package::default() };
        assert_eq!(check(&[bare])[0], "xtask: rust-version is \"\"; expected \"1.85\"");
    }
}
