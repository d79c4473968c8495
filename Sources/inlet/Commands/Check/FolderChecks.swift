import InletAgent
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import SystemPackage

// The checks of folders: the state directory, the watched folders, and those for results.

extension Findings {
    /// The state directory exists or can be made, is on a local disk, and belongs to this user.
    mutating func checkState(_ path: FilePath) {
        if onlyLooks, FileLook.glance(at: path) == .missing {
            do throws(SystemError) {
                try Self.requireRoom(for: path)
                return add(.fine, "state_dir", "\(path.display) is not there yet; an agent makes it")
            } catch {
                return add(.wrong, "state_dir", error, because: "The agent makes its state directory there")
            }
        }
        do {
            let state = try StateDirectory(path)
            add(.fine, "state_dir", "\(state.path.display) is ready to use")
        } catch {
            if case .held = error {
                add(.fine, "state_dir", "\(path.display) is in use by a running agent")
            } else {
                add(.wrong, "state_dir", "\(error)")
            }
        }
    }

    /// The folder for a destination's results can be made and written, and is not a watched one.
    mutating func checkResults(_ path: FilePath, of name: String, _ watched: [WatchSettings]) {
        let what = "destination \(name)"
        let test = path.appending(".inlet-check.tmp")
        do throws(SystemError) {
            if onlyLooks {
                try Self.requireRoom(for: path)
            } else {
                try DurableFile.makeDirectories(path, mode: 0o755, asFolderOwner: true)
                try DurableFile.write([], to: test, mode: 0o600)
                try DurableFile.remove(test)
            }
        } catch {
            if !onlyLooks { DurableFile.discard(test) }
            return add(.wrong, what, error, because: "Inlet writes its results there")
        }
        if let watch = watched.first(where: { $0.root(of: path) != nil }) {
            add(
                .warning, what,
                "its results would go below the watched folder \(watch.path.display): they are taken as new files where a route "
                    + "matches them",
                remedy: "choose another folder for 'results'")
        } else {
            add(.fine, what, "results go to \(path.display)")
        }
    }

    /// Which destinations of a route are one copy, because they share a disk or a server.
    mutating func checkCopies(_ settings: Settings, _ destinations: [Destination]) {
        // The watched folders' checks report a missing /proc.
        guard let disks = try? PhysicalDisks.current() else { return }
        let known = destinations.compactMap { made in made.disks(disks).map { (name: made.name, disks: $0) } }
        let wanted = settings.watch.compactMap(\.card.copies).max() ?? 0
        for route in settings.routes {
            let found = CopyCount.count(known.filter { route.to.contains($0.name) })
            let isShort = found.copies < min(wanted, route.to.count)
            for shared in found.shared {
                add(
                    isShort ? .warning : .fine, "copies, route \(route.name)", shared.text,
                    remedy: isShort
                        ? "add a destination on another disk: a card with files of this route lacks one of its \(wanted) copies"
                        : nil)
            }
        }
    }

    /// Whether names can be created in a folder, or the folder itself can be made.
    private static func requireRoom(for path: FilePath) throws(SystemError) {
        var place = path
        while place.lastComponent != nil, try FileLook.look(at: place) == .missing { place.removeLastComponent() }
        try DurableFile.requireWritable(place)
    }

    // MARK: - Watched folders

    /// A watched folder exists, is readable, and is writable where files are moved or deleted.
    mutating func checkRoot(_ watch: WatchSettings, _ settings: Settings) {
        let name = "watch \(watch.path.display)"
        if let pattern = watch.pattern {
            let word = watch.volumeWrites ? "written to" : "never written to"
            let folders = RootCheck.folders(of: pattern)
            add(
                .fine, name,
                "a pattern: its folders are watched as they appear, and \(word), so that agents do not know of each other "
                    + "there; now: \(folders.isEmpty ? "none" : folders.map(\.display).joined(separator: ", "))")
            for folder in folders { checkMode(watch.at(folder)) }
            if let words = watch.onCard { checkProgram(words, name) }
            return
        }
        do {
            guard case .directory = try FileLook.look(at: watch.path) else {
                return add(
                    .warning, name, RootCheck.reason(watch.path),
                    remedy: RootCheck.isBlocked(watch.path)
                        ? nil : "create it or mount its disk",
                    topic: RootCheck.isBlocked(watch.path) ? .access : .folder)
            }
            if RootCheck.pseudo(watch.path) != nil {
                return add(
                    .wrong, name, RootCheck.reason(watch.path), remedy: "set 'path' to another folder")
            }
            var listing = try DirectoryStream(watch.path)
            _ = try listing.next()
            add(.fine, name, "readable; writer check: \(RootCheck.writerCheck(watch.path))")
            try checkLock(watch, RootOwnership(watch, stateDirectory: settings.stateDirectory), name)
            checkMode(watch)
            if let caution = RootCheck.linkCaution(watch.sources, at: watch.path) {
                add(.warning, name, caution, remedy: RootCheck.linkRemedy)
            }
        } catch {
            return add(.wrong, name, error)
        }
        if settings.routes.contains(where: { $0.onSuccess != .keep || $0.onFailure != .keep }) {
            checkMoves(in: watch.path, name)
        }
    }

    private mutating func checkLock(_ watch: WatchSettings, _ hold: RootOwnership, _ name: String) throws(SystemError) {
        if let place = watch.place { return checkMarker(watch.path, place, name) }
        guard RootOwnership.isLocked(watch) else {
            return add(.fine, name, "other agents may watch it too (shared)")
        }
        if let holder = try hold.stranger() {
            add(
                .warning, name, "another agent watches it: \(holder)",
                remedy: "let one of them watch it; to let both, set 'shared: true' in both")
        }
        do throws(SystemError) {
            let own = try FileLook.look(at: watch.path.pushing(WatchLock.folder))
            try DurableFile.requireWritable(own == .missing ? watch.path : watch.path.pushing(WatchLock.folder))
        } catch {
            add(
                .fine, name,
                "Inlet cannot write to it, and would not notice another agent that watches it too (\(error))")
        }
    }

    /// Makes, renames and removes a file, as a disposal does; or looks whether that is allowed.
    private mutating func checkMoves(in folder: FilePath, _ name: String) {
        let test = folder.appending(".inlet-check.tmp")
        let moved = folder.appending(".inlet-check-moved.tmp")
        do throws(SystemError) {
            if onlyLooks { return try DurableFile.requireWritable(folder) }
            try DurableFile.write([], to: test, mode: 0o600)
            try DurableFile.rename(test, to: moved)
            try DurableFile.remove(moved)
        } catch {
            // The agent never takes a file of this name.
            if !onlyLooks { for file in [test, moved] { DurableFile.discard(file) } }
            add(
                .wrong, name, error,
                because: "To archive, delete or quarantine files here, user "
                    + "\(ProcessSetup.userID) must be able to write to the folder")
        }
    }

    /// How the mounts of a watched folder are watched, and why.
    private mutating func checkMode(_ watch: WatchSettings) {
        for (place, way) in WatchModes(of: watch).sorted {
            let name = "watch \(watch.path.pushing(place).display)"
            if watch.mode == .fanotify, !way.isPolled {
                // A mount below it becomes known when it is listed.
                guard place.isEmpty else { continue }
                if let reason = RootCheck.fanotifyRefusal(watch) {
                    add(.warning, name, "mode: fanotify is unavailable, so Inlet uses inotify: \(reason)")
                } else {
                    add(.fine, name, "fanotify: one mark for its file system")
                }
                continue
            }
            let how = way.isPolled ? "polled, every \(DurationText.format(watch.poll)) or less often" : "inotify"
            add(.fine, name, "\(how) (\(way.reason))")
        }
    }

    // MARK: - inotify

    /// Whether inotify's limits allow a watch for every folder that is not polled, and an instance for every entry of
    /// `watch`.
    mutating func checkWatchLimits(_ entries: [WatchSettings]) {
        let roots = entries.flatMap { watch in
            watch.pattern.map { RootCheck.folders(of: $0).map { watch.at($0) } } ?? [watch]
        }
        // A pattern has an instance of its own, for the folders that it may find.
        let instances = roots.count { $0.mode != .poll } + entries.count { $0.pattern != nil }
        let need = WatchNeed(directories: roots.reduce(0) { $0 + Self.watches(for: $1) })
        for (isMet, text) in need.findings(instances: instances) {
            add(isMet ? .fine : .warning, "watches", text, topic: .limits)
        }
    }

    /// Folders that need a watch.
    private static func watches(for watch: WatchSettings) -> Int {
        guard watch.mode != .poll, watch.mode != .fanotify || RootCheck.fanotifyRefusal(watch) != nil,
            // A watched folder that cannot be read has a finding of its own.
            case .directory? = FileLook.glance(at: watch.path)
        else { return 0 }
        let (modes, ignore) = (WatchModes(of: watch), IgnoreList(user: watch.ignore))
        var count = 0
        var waiting: [FilePath] = [""]
        while let folder = waiting.popLast() {
            // Listing folders of other machines may be slow, and a polled folder seldom has a local one below it.
            guard !modes.way(for: folder).way.isPolled || modes.isMixed(below: folder) else { continue }
            if !modes.way(for: folder).way.isPolled { count += 1 }
            guard watch.recursive else { continue }
            do throws(SystemError) {
                var listing = try DirectoryStream(watch.path.pushing(folder))
                while let entry = try listing.next() {
                    let child = folder.appending(entry.name)
                    guard entry.kind == .directory, !ignore.ignoresName(child, isDirectory: true) else { continue }
                    waiting.append(child)
                }
            } catch {
                // The count is compared with the kernel's limit: a folder that cannot be listed needs one watch at
                // most.
            }
        }
        return count
    }
}
