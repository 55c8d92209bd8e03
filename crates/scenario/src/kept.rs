//! A scenario as it is kept with a result: the files that it names lie beside it, so that the folder can be read from
//! anywhere, moved, and run again after the originals have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Scenario;

/// What to write into a folder for a scenario that is kept there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The resolved scenario as TOML; files in it are named from the folder.
    pub toml: String,
    /// The files that it names: where each is to lie in the folder, and where it lies now.
    pub files: Vec<(PathBuf, PathBuf)>,
}

impl Scenario {
    /// The files that it names, each once: recorded links and radio conditions.
    pub fn files(&self) -> Vec<PathBuf> {
        let files: BTreeSet<PathBuf> = self.clone().files_mut().into_iter().map(|file| file.clone()).collect();
        files.into_iter().collect()
    }

    /// The scenario as it is kept in `folder`, with its files in `inputs` in there. A file keeps its name, with a number
    /// in front if another one has that. What lies there already stays as it is.
    pub fn kept(&self, folder: &Path, inputs: &str) -> Kept {
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
        Kept { toml: moved.to_toml(), files: names.into_iter().map(|(file, kept)| (kept, file)).collect() }
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let links = [Some(&mut self.fixed), self.access.as_mut()].into_iter().flatten();
        let own = self.groups.iter_mut().filter_map(|group| group.conditions.as_mut()?.recorded.as_mut());
        links.flat_map(|link| link.files_mut()).chain(self.bearer.files_mut()).chain(own).collect()
    }
}

/// A path that is the same for all names of a file, as long as that exists.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
