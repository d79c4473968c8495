import InletCore
import SystemPackage

/// `watch:`, and checks that no folder of the agent lies where it would take in its own files.
extension SettingsReader {
    mutating func watch(_ section: Section<WatchKeys>) -> WatchSettings {
        var watch = WatchSettings(
            path: section.path ?? "", mode: section.mode, recursive: section.recursive, settle: section.settle,
            rescan: section.rescan, existing: section.existing, ignore: parsed(section, \.ignore, GlobPattern.init),
            archiveDirectory: FilePath(section.archiveDirectory).lexicallyNormalized(),
            quarantineDirectory: FilePath(section.quarantineDirectory).lexicallyNormalized(), hold: section.hold)
        watch.isShared = section.shared ?? false
        watch.settleEmpty = section.settleEmpty
        watch.adoptCheck = section.adoptCheck
        watch.poll = section.poll
        watch.readers = section.readers
        watch.expect = expectation(section)
        readPattern(section, into: &watch)
        watch.place = place(section)
        watch.sources = sourceRule(section)
        if watch.adoptCheck, watch.existing != .adopt {
            report(section.position(\.adoptCheck), "'adopt_check' needs 'existing: adopt'")
        }
        if watch.poll < .seconds(1) { report(section.position(\.poll), "'poll' must be 1s or longer") }
        return watch
    }

    /// Cards come when a person brings them, so nothing is expected of a pattern.
    private mutating func expectation(_ section: Section<WatchKeys>) -> Duration? {
        guard let expect = section.expect else { return nil }
        let place = section.position(\.expect)
        if let path = section.path, RootPattern.isPattern(path) {
            report(
                place,
                "remove 'expect': it is only for a path without a pattern, because cards and disks come and go")
        }
        if expect < .seconds(1) { report(place, "'expect' must be 1s or longer, or off") }
        return expect
    }

    // MARK: - Shares

    /// The name of a folder that other agents of the fleet watch too.
    private mutating func place(_ section: Section<WatchKeys>) -> String? {
        guard let name = section[dynamicMember: \.place] else { return nil }
        let place = section.position(\.place)
        if let objection = FleetSettings.objection(toName: name) { report(place, "'place' \(objection)") }
        if let path = section.path, RootPattern.isPattern(path) {
            report(
                place, "remove 'place': it is only for a path without a pattern, because cards and disks come and go")
        }
        if section.shared == true {
            report(
                section.position(\.shared),
                "remove 'shared': with 'place' PostgreSQL says which agent lists the folder, and all deliver its files")
        }
        if section.existing == .adopt {
            report(
                section.position(\.existing),
                "'existing: adopt' is not possible with 'place', because other agents may have sent a file; "
                    + "choose ingest or skip")
        }
        return name
    }

    /// A share needs a fleet, and a name of its own: two folders of one name would be two shares with one marker.
    mutating func checkPlaces() {
        var paths: [String: FilePath] = [:]
        for entry in file.watch {
            guard let name = entry[dynamicMember: \.place] else { continue }
            if file.place(\.fleet) == nil {
                report(
                    entry.position(\.place),
                    "'place' needs 'fleet:' at the top level; use 'shared: true' for agents without a fleet")
            }
            if let other = paths[name] {
                report(
                    entry.position(\.place),
                    "'place' is also that of \(other.display); give each folder a name of its own")
            }
            paths[name] = paths[name] ?? entry.path
        }
    }

    // MARK: - Whose files are taken

    /// Looks up user names while the file is read: only then are their positions known. `inlet check` and a reload
    /// report an unknown user at once.
    private mutating func sourceRule(_ section: Section<WatchKeys>) -> SourceRule {
        guard let listed = section.owners else { return SourceRule(hardLinks: section.hardLinks) }
        if listed.isEmpty {
            report(
                section.position(\.owners),
                "'owners' names no user, so Inlet would take no files; leave the key out for any user")
        }
        var owners: Set<UInt32> = []
        for (text, node) in texts(section, \.owners) {
            switch user(text) {
            case .found(let number): owners.insert(number)
            case .unknown:
                report(
                    node.position,
                    "unknown user \(quoted(text, node)); choose one from 'getent passwd', or give a number")
            case .failed(let reason):
                report(node.position, "cannot look up user \(quoted(text, node)): \(reason)")
            }
        }
        return SourceRule(owners: owners, hardLinks: section.hardLinks)
    }

    /// Never quotes a value that `${…}` filled in.
    private func quoted(_ text: String, _ node: YAMLNode) -> String {
        if case .scalar(let written, _) = node.content, written == text { return SecretMask.quoted(text) }
        return "from ${…}"
    }

    private func user(_ text: String) -> UserLookup {
        guard let number = UInt32(text), text.first?.isNumber == true else { return defaults.users(text) }
        // 4294967295 means "no user" (chown(2)).
        return number == .max ? .unknown : .found(number)
    }

    // MARK: - Folders that come and go with their volumes

    private mutating func readPattern(_ section: Section<WatchKeys>, into watch: inout WatchSettings) {
        watch.volumeWrites = section.volumeWrites ?? false
        watch.volumeDoneAfter = section.volumeDoneAfter
        watch.card.counts = section.volumeSafe ?? .everything
        watch.card.acceptsSize = section.acceptSize ?? false
        watch.card.copies = section.copies
        watch.card.secondRead = section.sourceCheck ?? .off
        watch.cardReport = section.cardReport ?? []
        watch.ask = section.ask ?? .offer
        guard RootPattern.isPattern(watch.path) else {
            refuse(section, \.volumeWrites)
            refuse(section, \.volumeDoneAfter)
            refuse(section, \.volumeSafe)
            refuse(section, \.acceptSize)
            refuse(section, \.copies)
            refuse(section, \.sourceCheck)
            refuse(section, \.cardReport)
            refuse(section, \.ask)
            refuse(section, \.onComplete)
            refuse(section, \.onCard)
            return
        }
        watch.onComplete = section.onComplete ?? .keep
        watch.onCard = section.onCard.flatMap {
            program($0, at: section.position(\.onCard), of: section.keyName(\.onCard))
        }
        do throws(PatternError) {
            watch.pattern = try RootPattern(watch.path)
        } catch {
            report(section.position(\.path), error.message)
        }
    }

    private mutating func refuse<Value>(_ section: Section<WatchKeys>, _ key: KeyPath<WatchKeys, Key<Value?>>) {
        guard section[dynamicMember: key] != nil else { return }
        report(
            section.position(key),
            "remove '\(section.keyName(key))': it is only for a path with a pattern, such as /media/*/DCIM")
    }

    /// Inlet never writes to cards by surprise: if a route moves or deletes what it has sent, the user must decide
    /// about cards.
    mutating func checkVolumes(_ settings: Settings) {
        guard let route = settings.routes.first(where: { $0.onSuccess != .keep || $0.onFailure != .keep }) else {
            return
        }
        let what =
            route.onSuccess == .keep
            ? "on_failure: \(route.onFailure.rawValue)" : "on_success: \(route.onSuccess.rawValue)"
        for (watch, entry) in zip(settings.watch, file.watch) {
            guard watch.pattern != nil, entry.volumeWrites == nil else { continue }
            report(
                entry.position(\.path),
                "add 'volume_writes: true' to let route '\(route.name)' (\(what)) change files on these volumes, "
                    + "or 'volume_writes: false' to keep them unchanged")
        }
    }

    // MARK: - Nested folders

    /// Rejects nested roots, and folders of the agent whose files it would take in again.
    mutating func checkFolders(_ settings: Settings) {
        let roots = zip(settings.watch, file.watch).filter { !$0.0.path.isEmpty }
        for (index, (watch, entry)) in roots.enumerated() {
            for (other, _) in roots[..<index] { checkNesting(watch, other, at: entry.position(\.path)) }
            checkOwnFolder(\.archiveDirectory, watch.archiveDirectory, of: watch, entry, roots: settings.watch)
            checkOwnFolder(\.quarantineDirectory, watch.quarantineDirectory, of: watch, entry, roots: settings.watch)
        }
        checkFeeding("state_dir", settings.stateDirectory, at: file.position(\.stateDirectory), roots: settings.watch)
        for destination in settings.destinations {
            guard let key = type(named: destination.type)?.folderKey, let path = destination.values.string(key) else {
                continue
            }
            let place = destination.values.position(key)
            checkFeeding("destination '\(destination.name)'", FilePath(path), at: place, roots: settings.watch)
        }
    }

    /// Two roots would both take in a file below them.
    private mutating func checkNesting(_ watch: WatchSettings, _ others: WatchSettings, at position: SourcePosition) {
        let (path, other) = (watch.path, others.path)
        if path != other, others.root(of: path) != nil || watch.root(of: other) != nil,
            watch.pattern != nil || others.pattern != nil
        {
            report(position, "\(path.display) and \(other.display) can match the same folder; watch only one of them")
        } else if path == other {
            report(position, "\(path.display) is watched twice")
        } else if path.isInside(other) {
            report(position, "\(path.display) lies inside the watched folder \(other.display); watch only one of them")
        } else if other.isInside(path) {
            report(position, "\(path.display) contains the watched folder \(other.display); watch only one of them")
        }
    }

    /// Checks `archive_dir` or `quarantine_dir`: relative to the root unless absolute, and outside what is watched.
    private mutating func checkOwnFolder(
        _ key: KeyPath<WatchKeys, Key<String>>, _ folder: FilePath, of watch: WatchSettings,
        _ entry: Section<WatchKeys>, roots: [WatchSettings]
    ) {
        let (name, place) = (entry.keyName(key), entry.position(key))
        if folder.isAbsolute { return checkFeeding(name, folder, at: place, roots: roots) }
        let whole = watch.path.pushing(folder).lexicallyNormalized()
        guard whole.isInside(watch.path), whole != watch.path else {
            return report(place, "'\(name)' must be a folder below the watched one, or an absolute path")
        }
        checkFeeding(name, whole, at: place, roots: roots)
    }

    /// Reports `folder` once if a watched root would take in files that Inlet puts there.
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
                "move \(what) out of the watched folder \(root.path.display), below its .inlet, or add it to 'ignore': "
                    + "Inlet would take in its files again")
        }
    }
}
