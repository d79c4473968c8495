import InletAgent
import InletCore
import InletLinux
import SystemPackage

/// The state directory: there or makeable, local, ours.
enum StateCheck {
    static func run(_ path: FilePath, _ findings: inout Findings) {
        do {
            let state = try StateDirectory(path)
            findings.add(.fine, "state_dir", "\(state.path.display) is ours to use")
        } catch {
            if case .held = error {
                findings.add(.fine, "state_dir", "\(path.display) is in use by a running agent")
            } else {
                findings.add(.wrong, "state_dir", "\(error)")
            }
        }
    }
}

/// One watched folder: there, readable, and writable where files are to be moved or deleted.
struct RootCheck {
    private let watch: WatchSettings
    private let hold: RootHold
    private let mustMove: Bool

    init(_ watch: WatchSettings, _ settings: Settings) {
        self.watch = watch
        hold = RootHold(watch, stateDirectory: settings.stateDirectory)
        mustMove = settings.routes.contains { $0.onSuccess != .keep || $0.onFailure != .keep }
    }

    func run(_ findings: inout Findings) {
        let name = "watch \(watch.path.display)"
        if let pattern = watch.pattern {
            let word = watch.volumeWrites ? "written to" : "never written to"
            findings.add(
                .fine, name,
                "a pattern: its folders are watched as they come, and \(word), so that agents do not know of each other "
                    + "there; now: \(Self.now(pattern))")
            for folder in WatchedFolders.now(pattern) { ModeCheck.run(watch.at(folder), &findings) }
            return
        }
        do {
            guard case .directory = try FileLook.look(at: watch.path) else {
                return findings.add(
                    .warning, name, RootAbsence.reason(watch.path),
                    remedy: RootAbsence.isBlocked(watch.path)
                        ? nil : "make it or mount its disk, if it should be there")
            }
            if RootAbsence.pseudo(watch.path) != nil {
                return findings.add(
                    .wrong, name, RootAbsence.reason(watch.path), remedy: "name another folder in 'path'")
            }
            var listing = try DirectoryStream(watch.path)
            _ = try listing.next()
            findings.add(.fine, name, "readable; writer check: \(WriterCheck.describe(watch.path))")
            try checkLock(name, &findings)
            ModeCheck.run(watch, &findings)
            if let caution = LinkCaution.text(watch.sources, at: watch.path) {
                findings.add(.warning, name, caution, remedy: LinkCaution.remedy)
            }
        } catch {
            return findings.add(.wrong, name, error)
        }
        if mustMove { checkMoves(name, &findings) }
    }

    private func checkLock(_ name: String, _ findings: inout Findings) throws(SystemError) {
        guard RootHold.isLocked(watch) else {
            return findings.add(.fine, name, "other agents may watch it too (shared)")
        }
        if let holder = try hold.stranger() {
            findings.add(
                .warning, name, "another agent watches it: \(holder)",
                remedy: "let one of them watch it; if both are meant to, say 'shared: true' in both")
        }
        do throws(SystemError) {
            let own = try FileLook.look(at: watch.path.pushing(WatchLock.folder))
            try DurableFile.requireWritable(own == .missing ? watch.path : watch.path.pushing(WatchLock.folder))
        } catch {
            findings.add(
                .fine, name,
                "it cannot be written, so that another agent that watches it too would not be noticed (\(error))")
        }
    }

    private static func now(_ pattern: RootPattern) -> String {
        let there = WatchedFolders.now(pattern).map(\.display)
        return there.isEmpty ? "none" : there.joined(separator: ", ")
    }

    /// Makes, renames and removes a file, as the finisher would.
    private func checkMoves(_ name: String, _ findings: inout Findings) {
        let test = watch.path.appending(".inlet-check.tmp")
        let moved = watch.path.appending(".inlet-check-moved.tmp")
        do {
            try DurableFile.write([], to: test, mode: 0o600)
            try DurableFile.rename(test, to: moved)
            try DurableFile.remove(moved)
        } catch {
            // What was wrong first is what is told; a file of this name is never taken.
            for file in [test, moved] { try? DurableFile.remove(file) }
            findings.add(
                .wrong, name, error,
                because: "Files here are to be archived, deleted or quarantined, so user "
                    + "\(ProcessSetup.userID) must be able to write to the folder")
        }
    }
}

/// The folder for what a destination gives back: makeable, writable, and not one whose files are taken.
enum ResultsCheck {
    static func run(_ path: FilePath, of name: String, _ watched: [WatchSettings], _ findings: inout Findings) {
        let what = "destination \(name)"
        let test = path.appending(".inlet-check.tmp")
        do {
            try DurableFile.makeDirectories(path, mode: 0o755)
            try DurableFile.write([], to: test, mode: 0o600)
            try DurableFile.remove(test)
        } catch {
            // What was wrong first is what is told.
            try? DurableFile.remove(test)
            return findings.add(.wrong, what, error, because: "What it gives back is written there (results)")
        }
        if let watch = watched.first(where: { $0.root(of: path) != nil }) {
            findings.add(
                .warning, what,
                "its results are below the watched folder \(watch.path.display): they are taken as new files where a route "
                    + "matches them",
                remedy: "choose another folder for 'results'")
        } else {
            findings.add(.fine, what, "results go to \(path.display)")
        }
    }
}

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
        if let reason = FanotifyCheck.refusal(watch) {
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
            watch.pattern.map { WatchedFolders.now($0).map { watch.at($0) } } ?? [watch]
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
        guard watch.mode != .poll, watch.mode != .fanotify || FanotifyCheck.refusal(watch) != nil,
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
