/// `sidecars:` of a route: which small files belong to each of its files, and how long they wait for each other.
package struct SidecarRule: Sendable, Equatable {
    /// `<file>.yaml` (or `.yml`) holds the destination's own fields of the file.
    package var metadata: Bool
    /// Endings of companions, in lower case, without the dot: `clip.xmp` and `clip.mp4.xmp` belong to `clip.mp4`.
    package var extensions: [String]
    /// How long a file must be quiet before it goes without what is missing, and a companion without its file.
    package var wait: Duration

    package init(
        metadata: Bool = SidecarKeys.all.metadata.standard, extensions: [String] = [],
        wait: Duration = SidecarKeys.all.wait.standard
    ) {
        self.metadata = metadata
        self.extensions = extensions
        self.wait = wait
    }

    package var isEmpty: Bool { !metadata && extensions.isEmpty }
}

/// `unit:` of a route: what is delivered as one.
package enum RouteUnit: String, Sendable, CaseIterable {
    /// Each file for itself.
    case file
    /// All files of a folder: none of them before the folder is closed.
    case folder
}

/// `completion:` of a route: what says that a unit is complete.
package enum Completion: String, Sendable, CaseIterable {
    /// Nothing happens to it for the settle time.
    case quiet
    /// An empty file beside it: `<name>.done` for a file, `DONE` in a folder.
    case marker

    /// What a marker's name adds to its file's.
    static let fileEnding = "done"
    /// The marker of a folder.
    package static let folderMarker = "DONE"
    /// In a folder, what it says of its files; never sent.
    package static let labelsFile = ".inlet.yaml"
}
