extension WatchSettings {
    /// How changes below a root are to be found out.
    package enum Mode: String, Sendable, CaseIterable {
        /// What fits each mount.
        case auto
        /// One mark for a file system instead of a watch for each folder, where that can be had.
        case fanotify
    }
}

/// How changes below a folder are found out.
package enum WatchMode: String, Sendable {
    case inotify
    case fanotify
}
