//! A scenario as it is stored in a result folder, with copies of the files that it names. The
//! folder can be moved, and run again after the originals have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{BearerConfig, FlowGroup, Scenario};

/// A scenario and its files, to be written into a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The resolved scenario as TOML; files in it are named from the folder.
    pub toml: String,
    /// The files that it names: the path of each in the folder, and its present path.
    pub files: Vec<(PathBuf, PathBuf)>,
}

impl Scenario {
    /// The files that it names, each once: recorded links, radio conditions, videos, sessions.
    pub fn files(&self) -> Vec<PathBuf> {
        let files: BTreeSet<PathBuf> = self.clone().files_mut().into_iter().map(|file| file.clone()).collect();
        files.into_iter().collect()
    }

    /// The scenario for `folder`, with its files in the subfolder `inputs`. A file keeps its name,
    /// with a number in front if another file has the same one. Files that are there already keep
    /// their place.
    pub fn archive(&self, folder: &Path, inputs: &str) -> Archive {
        let place = whole(&folder.join(inputs));
        let (there, elsewhere): (Vec<PathBuf>, Vec<PathBuf>) =
            self.files().into_iter().partition(|file| whole(file).parent() == Some(&place));
        let mut names: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for file in there.into_iter().chain(elsewhere) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let numbered = (2..).map(|number| format!("{number}-{name}"));
            let kept = std::iter::once(name.clone())
                .chain(numbered)
                .map(|name| Path::new(inputs).join(name))
                .find(|kept| !names.values().any(|other| other == kept))
                .expect("there are more numbers than files");
            names.insert(file, kept);
        }
        let mut moved = self.clone();
        for file in moved.files_mut() {
            if let Some(kept) = names.get(file) {
                file.clone_from(kept);
            }
        }
        Archive { toml: moved.to_toml(), files: names.into_iter().map(|(file, kept)| (kept, file)).collect() }
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let links = [Some(&mut self.fixed), self.access.as_mut()].into_iter().flatten();
        let own = self.groups.iter_mut().filter_map(|group| group.conditions.as_mut()?.recorded.as_mut());
        let flows = self.flow_groups.iter_mut().filter_map(FlowGroup::file_mut);
        let bearers = [Some(&mut self.bearer), self.second_bearer.as_mut()].into_iter().flatten();
        let bearers = bearers.flat_map(BearerConfig::files_mut);
        links.flat_map(|link| link.files_mut()).chain(bearers).chain(own).chain(flows).collect()
    }
}

/// The canonical path of a file, if it exists.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
