import InletAgent
import InletCore
import InletLinux
import SystemPackage

/// How the mounts of a watched folder are watched, and why.
enum ModeCheck {
    static func run(_ watch: WatchSettings, _ findings: inout Findings) {
        for (place, way) in WatchModes(of: watch).sorted {
            let name = "watch \(watch.path.pushing(place).display)"
            if watch.mode == .fanotify, !way.isPolled {
                // Of a mount below it is known once it is listed.
                if place.isEmpty { checkMark(watch, name, &findings) }
                continue
            }
            let how = way.isPolled ? "polled, every \(DurationText.format(watch.poll)) or less often" : "inotify"
            findings.add(.fine, name, "\(how) (\(way.reason))")
        }
    }

    private static func checkMark(_ watch: WatchSettings, _ name: String, _ findings: inout Findings) {
        if let reason = RootInspection.fanotifyRefusal(watch) {
            findings.add(.warning, name, "mode: fanotify cannot be used, inotify is: \(reason)")
        } else {
            findings.add(.fine, name, "fanotify: one mark for its file system")
        }
    }
}

/// Whether inotify has room for every folder that is not polled, and for every entry of `watch`.
enum WatchLimitCheck {
    static func run(_ entries: [WatchSettings], _ findings: inout Findings) {
        let roots = entries.flatMap { watch in
            watch.pattern.map { RootInspection.folders(of: $0).map { watch.at($0) } } ?? [watch]
        }
        // A pattern has one of its own, for the folders that it may find.
        let instances = roots.count { $0.mode != .poll } + entries.count { $0.pattern != nil }
        let need = WatchNeed(directories: roots.reduce(0) { $0 + count($1) })
        for (isMet, text) in need.findings(instances: instances) {
            findings.add(isMet ? .fine : .warning, "watches", text)
        }
    }

    /// Folders that need a watch.
    private static func count(_ watch: WatchSettings) -> Int {
        guard watch.mode != .poll, watch.mode != .fanotify || RootInspection.fanotifyRefusal(watch) != nil,
            // A watched folder that cannot be looked at has a finding of its own.
            case .directory? = try? FileLook.look(at: watch.path)
        else { return 0 }
        let (modes, ignore) = (WatchModes(of: watch), IgnoreList(user: watch.ignore))
        var count = 0
        var waiting: [FilePath] = [""]
        while let folder = waiting.popLast() {
            // Other machines may be slow to list their folders, and a polled place seldom has a local one below it.
            guard !modes.way(for: folder).way.isPolled || modes.isMixed(below: folder) else { continue }
            if !modes.way(for: folder).way.isPolled { count += 1 }
            // The count is for the kernel's limit: what cannot be listed needs one watch at most.
            guard watch.recursive, var listing = try? DirectoryStream(watch.path.pushing(folder)) else { continue }
            // As above.
            while let entry = try? listing.next() {
                let child = folder.appending(entry.name)
                guard entry.kind == .directory, !ignore.ignoresName(child, isDirectory: true) else { continue }
                waiting.append(child)
            }
        }
        return count
    }
}
