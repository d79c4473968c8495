import InletCore
import SystemPackage

extension SettingsReader {
    mutating func watch(_ section: ConfigSection, _ node: YAMLNode) -> WatchSettings {
        var watch = WatchSettings(path: FilePath(section.string("path") ?? ""))
        readPattern(section, into: &watch)
        watch.isShared = section.boolean("shared") ?? false
        if let recursive = section.boolean("recursive") { watch.recursive = recursive }
        if let settle = section.duration("settle") { watch.settle = settle }
        if let settle = section.duration("settle_empty") { watch.settleEmpty = settle }
        if section.values["rescan"] != nil { watch.rescan = section.duration("rescan") }
        if let choice = section.string("existing").flatMap(WatchSettings.Existing.init) { watch.existing = choice }
        if let check = section.boolean("adopt_check") { watch.adoptCheck = check }
        if watch.adoptCheck, watch.existing != .adopt {
            report(position("adopt_check", section), "'adopt_check' needs 'existing: adopt'")
        }
        readRule(section, node, into: &watch.sources)
        watch.ignore = patterns("ignore", section, node)
        if let path = section.string("archive_dir") { watch.archiveDirectory = FilePath(path).lexicallyNormalized() }
        if let path = section.string("quarantine_dir") {
            watch.quarantineDirectory = FilePath(path).lexicallyNormalized()
        }
        if let hold = section.duration("hold") { watch.hold = hold }
        if let mode = section.string("mode").flatMap(WatchSettings.Mode.init) { watch.mode = mode }
        if let poll = section.duration("poll") {
            watch.poll = poll
            if poll < .seconds(1) { report(position("poll", section), "'poll' is at least 1s") }
        }
        return watch
    }

    /// Refuses roots inside each other, and folders of the agent's own whose files would be taken in again.
    mutating func checkFolders(_ settings: Settings, _ section: ConfigSection) {
        let entries = sections("watch", of: section, root).map(\.section)
        let roots = zip(settings.watch, entries).filter { !$0.0.path.isEmpty }
        for (index, (watch, entry)) in roots.enumerated() {
            for (other, _) in roots[..<index] { checkNesting(watch, other, at: position("path", entry)) }
            checkOwnFolder("archive_dir", watch.archiveDirectory, of: watch, entry, roots: settings.watch)
            checkOwnFolder("quarantine_dir", watch.quarantineDirectory, of: watch, entry, roots: settings.watch)
        }
        checkFeeding("state_dir", settings.stateDirectory, at: position("state_dir", section), roots: settings.watch)
        for destination in settings.destinations {
            guard let key = type(named: destination.type)?.folderKey, let path = destination.values.string(key) else {
                continue
            }
            let place = position(key, destination.values)
            checkFeeding("destination '\(destination.name)'", FilePath(path), at: place, roots: settings.watch)
        }
    }

    /// A file below two roots would be taken in twice.
    private mutating func checkNesting(_ watch: WatchSettings, _ others: WatchSettings, at position: SourcePosition) {
        let (path, other) = (watch.path, others.path)
        if path != other, others.root(of: path) != nil || watch.root(of: other) != nil,
            watch.pattern != nil || others.pattern != nil
        {
            report(position, "\(path.display) and \(other.display) can mean the same folder; watch one of them")
        } else if path == other {
            report(position, "\(path.display) is watched twice")
        } else if path.isInside(other) {
            report(position, "\(path.display) lies inside the watched folder \(other.display); watch one of them")
        } else if other.isInside(path) {
            report(position, "\(path.display) contains the watched folder \(other.display); watch one of them")
        }
    }

    /// Checks `archive_dir` or `quarantine_dir`: below the root unless absolute, and not taken in again.
    private mutating func checkOwnFolder(
        _ key: String, _ folder: FilePath, of watch: WatchSettings, _ entry: ConfigSection, roots: [WatchSettings]
    ) {
        let place = position(key, entry)
        if folder.isAbsolute { return checkFeeding(key, folder, at: place, roots: roots) }
        let whole = watch.path.pushing(folder).lexicallyNormalized()
        guard whole.isInside(watch.path), whole != watch.path else {
            return report(place, "'\(key)' is a folder below the watched one, or an absolute path")
        }
        checkFeeding(key, whole, at: place, roots: roots)
    }

    /// Reports `folder`, once, when files put there would be seen as new arrivals of a watched root.
    private mutating func checkFeeding(
        _ what: String, _ folder: FilePath, at position: SourcePosition, roots: [WatchSettings]
    ) {
        for root in roots where !root.path.isEmpty {
            guard let top = root.root(of: folder) ?? (folder.isInside(root.path) ? root.path : nil) else { continue }
            let below = folder.components(below: top)
            if !root.recursive, !below.isEmpty { continue }
            let relative = FilePath(root: nil, below)
            if !below.isEmpty, IgnoreList(user: root.ignore).ignores(relative, isDirectory: true) { continue }
            return report(
                position,
                "\(what) lies inside the watched folder \(root.path.display), whose files are taken in again; "
                    + "move it out, below .inlet, or add it to 'ignore'")
        }
    }
}
