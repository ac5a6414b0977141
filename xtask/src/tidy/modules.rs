//! The order of modules inside a crate.

/// A module of `emmc-workload` uses only those before it: its lib.rs.
const ORDER: [&str; 10] = ["stats", "result", "drive", "import", "trace", "fs", "job", "duty", "suites", "judge"];
const FOLDER: &str = "crates/emmc-workload/src/";

/// Every use of a later module; tests may use all of them.
pub(crate) fn check(path: &str, text: &str, is_test: bool) -> Vec<String> {
    let Some(module) = path.strip_prefix(FOLDER).filter(|_| !is_test) else { return Vec::new() };
    let module = module.split(['/', '.']).next().unwrap_or_default();
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let Some(own) = place(module) else {
        let known = module == "lib";
        return if known { Vec::new() } else { vec![format!("{path}: {module} has no place in the order of modules")] };
    };
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let used = code.split("crate::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    let mut against: Vec<&str> = used.flatten().filter(|name| place(name).is_some_and(|other| other > own)).collect();
    against.sort_unstable();
    against.dedup();
    against.iter().map(|name| format!("{path}: {module} uses {name}, against the order of modules")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_use_only_earlier_ones() {
        let found = |path: &str, text: &str| check(&format!("{FOLDER}{path}"), text, false);
        assert_eq!(found("job/run.rs", "use crate::drive::engine::Engine;"), Vec::<String>::new());
        let against = ["crates/emmc-workload/src/drive/engine.rs: drive uses suites, against the order of modules"];
        assert_eq!(found("drive/engine.rs", "use crate::suites::Cost;\nuse crate::suites::Bench;"), against);
        assert_eq!(found("drive/a.rs", "#[cfg(test)]\nmod tests {\n    use crate::job::Job;"), Vec::<String>::new());
        assert_eq!(found("told/a.rs", "").len(), 1);
        assert_eq!(check("crates/emmc-card/src/a.rs", "use crate::job::Job;", false), Vec::<String>::new());
    }
}
