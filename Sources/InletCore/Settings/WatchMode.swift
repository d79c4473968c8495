extension WatchSettings {
    /// How changes below a root are to be found out.
    package enum Mode: String, Sendable, CaseIterable {
        /// By events on local file systems, by polling on those that hide changes made elsewhere; decided per mount.
        case auto
        case inotify
        case poll
        /// As `auto`, but with one mark for a file system instead of a watch for each folder, where that can be had.
        case fanotify
    }
}

/// How changes below a folder are found out.
package enum WatchMode: String, Sendable {
    case inotify
    case poll
    case fanotify
}
