package import InletConfig
package import InletCore
package import InletLinux
internal import InletPipelines
package import SystemPackage

/// The paths and programs that an agent needs for its configuration.
package struct AccessPlan: Sendable {
    /// A path that is needed, as the configuration names it.
    struct Need: Sendable, Hashable {
        enum Kind: Sendable {
            /// A file that may be replaced by another of its name, as editors and secret stores do.
            case file
            /// The same for a file that may never exist.
            case possibleFile
            /// A folder that exists while the agent runs.
            case folder
            /// A folder that may be missing, or become a mount point, at any time.
            case coming
            /// A folder that Inlet creates in a watched one, or a single file in a folder that stays closed; it is optional.
            case own
            /// A formerly watched folder, of which files may still be under way.
            case former
        }

        var path: FilePath
        var kind: Kind
        var mayWrite: Bool

        fileprivate var isFile: Bool { kind == .file || kind == .possibleFile }
    }

    let needs: [Need]
    package let commands: [CommandPattern]
    /// Folders of the manual, which the page serves; empty where there is no page.
    private let manual: [FilePath]

    /// - Parameters:
    ///   - former: the formerly watched folders, from `FormerRoots`.
    ///   - home: where destinations look for credentials without a key.
    ///   - manual: where the manual may be.
    ///   - environment: of this process.
    package init(
        _ config: LoadedConfig, former: FormerRoots.Former = ([], []), home: FilePath?,
        manual: [FilePath] = [], environment: (String) -> String?
    ) {
        let settings = config.settings
        var needs = [Need(path: settings.stateDirectory, kind: .folder, mayWrite: true)]
        func file(_ path: FilePath) { needs.append(Need(path: path, kind: .file, mayWrite: false)) }
        let isFile = !LogSettings.streams.contains(settings.log.output)
        for log in [isFile ? FilePath(settings.log.output) : nil, settings.tlsKeyLog].compactMap(\.self) {
            needs.append(Need(path: log.removingLastComponent(), kind: .folder, mayWrite: true))
            // It may be a symlink.
            needs.append(Need(path: log, kind: .possibleFile, mayWrite: true))
        }
        needs.append(Need(path: config.file, kind: .file, mayWrite: settings.dashboard?.mayEdit ?? false))
        for path in config.credentialFiles { file(path) }
        for path in settings.notify.compactMap(\.caFile) + [settings.ping?.caFile].compactMap(\.self) { file(path) }
        if let path = environment("AWS_SHARED_CREDENTIALS_FILE") { file(FilePath(path)) }
        if let home {
            let usual = Set(settings.destinations.map(\.type)).sorted()
                .flatMap { DestinationKinds.named($0)?.usualFiles(home: home) ?? [] }
            needs += usual.map { Need(path: $0, kind: .possibleFile, mayWrite: false) }
        }
        for destination in settings.destinations {
            for key in DestinationKinds.named(destination.type)?.type.keys ?? [] {
                guard case .path = key.kind, let path = destination.values.string(key.name).map({ FilePath($0) }) else {
                    continue
                }
                // Any key but `…_file` is a folder that the destination writes to.
                let isFile = key.name.hasSuffix("_file")
                needs.append(Need(path: path, kind: isFile ? .file : .coming, mayWrite: !isFile))
            }
        }
        if let fleet = settings.fleet { needs += Self.needs(of: fleet, home: home, environment) }
        self.needs = needs + Self.watched(settings, former)
        commands = settings.commands
        self.manual = settings.dashboard == nil ? [] : manual
    }

    /// The files that libpq reads: those of the addresses and of the environment, and the usual ones of a home.
    private static func needs(
        of fleet: FleetSettings, home: FilePath?, _ environment: (String) -> String?
    ) -> [Need] {
        let sources = [fleet.url, fleet.adminURL].compactMap(\.self)
        let files = sources.compactMap { source in if case .file(let path) = source { path } else { nil } }
        // The agent says what is wrong with an address when it connects.
        let named = sources.flatMap { (try? FleetURL($0.read()))?.files ?? [] }
        let variables = ["PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL", "PGPASSFILE", "PGSERVICEFILE"]
            .compactMap { environment($0).map { FilePath($0) } }.filter(\.isAbsolute)
        let usual = home.map { [$0.appending(".postgresql").appending("root.crt")] } ?? []
        // Each alone: with its folder, the whole home would be open.
        let alone = home.map { [$0.appending(".pgpass"), $0.appending(".pg_service.conf")] } ?? []
        return (files + named + variables + usual + [fleet.joinFile].compactMap(\.self))
            .map { Need(path: $0, kind: .possibleFile, mayWrite: false) }
            + alone.map { Need(path: $0, kind: .own, mayWrite: false) }
    }

    private static func watched(_ settings: Settings, _ former: FormerRoots.Former) -> [Need] {
        let changesSources = settings.changesSources
        let current = settings.watch.flatMap {
            needs(of: $0, changesSources: changesSources || former.changed.contains($0.path))
        }
        // With `required`, the plan has the configured paths and nothing else.
        let left = settings.landlock == .required ? [] : former.roots
        return current
            + left.flatMap { needs(of: $0, changesSources: true) }.map {
                Need(path: $0.path, kind: .former, mayWrite: $0.mayWrite)
            }
    }

    private static func needs(of watch: WatchSettings, changesSources: Bool) -> [Need] {
        let mayWrite = changesSources && (watch.pattern == nil || watch.volumeWrites)
        let top = watch.pattern?.parent ?? watch.path
        let elsewhere = [watch.archiveDirectory, watch.quarantineDirectory].filter(\.isAbsolute)
        let lock = Need(path: top.pushing(WatchLock.folder), kind: .own, mayWrite: true)
        return [Need(path: top, kind: .coming, mayWrite: mayWrite)]
            + ((RootOwnership.isLocked(watch) || watch.place != nil) && !mayWrite ? [lock] : [])
            + elsewhere.map { Need(path: $0, kind: .coming, mayWrite: true) }
    }
}

extension Route {
    /// Whether files are moved, removed or written beside its files.
    fileprivate var changesSources: Bool {
        onSuccess != .keep || onFailure == .quarantine || receipts == .sidecar
    }
}

extension Settings {
    /// Whether files are moved, removed or written in watched folders.
    var changesSources: Bool { routes.contains(where: \.changesSources) }

    fileprivate var commands: [CommandPattern] {
        let told = notify.compactMap { if case .exec(let words) = $0.receiver { words } else { nil } }
        let place = Deriver.folder(in: stateDirectory).string + "/"
        let ejecting = watch.contains { $0.pattern != nil } ? VolumeEject.commands : []
        return (told + watch.compactMap(\.onCard)).map { CommandPattern($0) } + ejecting
            + routes.flatMap { $0.derive.map { CommandPattern($0.command, place: place) } }
    }
}

/// The parts of the file system that rules depend on.
package struct FileSystemLayout: Sendable {
    var mounts: MountTable
    /// The configured mount points, as in fstab(5), mounted or not.
    var planned: [FilePath] = []
    /// The target of a path, without symlinks; nil where nothing is.
    var resolve: @Sendable (FilePath) -> FilePath?

    /// A configured but unmounted mount point on the path.
    func missing(at path: FilePath) -> FilePath? {
        planned.first { point in path.isWithin(point) && !mounts.mounts.contains { $0.point == point } }
    }

    /// This machine's. Blocks.
    package static func current() throws(SystemError) -> FileSystemLayout {
        FileSystemLayout(mounts: try MountTable.current(), planned: MountTable.plannedPoints()) { $0.realPath }
    }
}

extension AccessPlan {
    /// Paths that the libraries and the agent itself read: resolver, certificates, time zones, file types, and the
    /// kernel's view of processes, mounts, disks and processors.
    private static let systemFolders: [FilePath] = [
        "/etc", "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/proc", "/sys/fs/cgroup",
        "/sys/devices", "/sys/class/block", "/dev/disk", "/dev/random", "/dev/urandom", "/run/udev", "/run/systemd",
        "/run/resolvconf",
        "/run/NetworkManager", "/run/connman", "/run/nscd", "/var/lib/ca-certificates",
    ]
    /// Often symlinks to elsewhere.
    private static let systemFiles: [FilePath] = ["/etc/resolv.conf", "/etc/hosts", "/etc/localtime"]
    private static let written: [FilePath] = ["/dev/null"]

    /// The rules under which an agent can do its work, also with folders that appear later.
    ///
    /// - Throws: why confinement would prevent its work.
    package func rules(on ground: FileSystemLayout) throws(Refusal) -> [AccessRule] {
        var rules: [AccessRule] = []
        for need in needs {
            rules += try places(of: need, on: ground).map { AccessRule($0, mayWrite: need.mayWrite) }
        }
        rules += (Self.systemFolders + manual).compactMap { ground.resolve($0).map { AccessRule($0) } }
        rules += Self.systemFiles.flatMap { Self.folders(of: $0, on: ground) }.map { AccessRule($0) }
        rules += Self.written.compactMap { ground.resolve($0).map { AccessRule($0, mayWrite: true) } }
        // One per path: the stronger.
        var strongest: [FilePath: Bool] = [:]
        for rule in rules { strongest[rule.path] = strongest[rule.path] ?? false || rule.mayWrite }
        return strongest.map { AccessRule($0.key, mayWrite: $0.value) }.sorted { $0.path.string < $1.path.string }
    }

    /// The first path that this needs and `rules` do not allow; nil without one.
    package func beyond(_ rules: [AccessRule], on ground: FileSystemLayout) -> FilePath? {
        needs.first { need in
            if need.kind == .former || need.kind == .own { return false }
            let places = need.isFile ? Self.folders(of: need.path, on: ground) : [need.path]
            if places.isEmpty { return need.kind == .file }
            return !places.allSatisfy { place in
                let real = Self.nearest(place, on: ground)
                return rules.contains { $0.covers(AccessRule(real, mayWrite: need.mayWrite)) }
            }
        }?.path
    }

    /// The first program that this names and `known` does not.
    package func beyond(_ known: [CommandPattern]) -> String? {
        commands.first { !known.contains($0) }?.words.first
    }

    /// The list of former folders is in the agent's own directory: it must not open a path that contains the agent's or
    /// the system's files, nor one below the system's.
    private func isModest(_ real: FilePath, on ground: FileSystemLayout) -> Bool {
        let steered = needs.filter { $0.isFile || $0.kind == .folder }.map(\.path)
        let programs = commands.flatMap(\.words).filter { $0.hasPrefix("/") }.map { FilePath($0) }
        let own = (steered + programs).compactMap { ground.resolve($0) }
        let system = Self.systemFolders + Self.written + ["/root", "/boot", "/sys", "/dev", "/bin", "/sbin"]
        return !own.contains { $0.isWithin(real) }
            && !system.contains { $0.isWithin(real) || real.isWithin($0) }
    }

    private func places(of need: Need, on ground: FileSystemLayout) throws(Refusal) -> [FilePath] {
        if need.isFile { return Self.folders(of: need.path, on: ground) }
        if need.kind == .former {
            guard let real = ground.resolve(need.path), isModest(real, on: ground) else { return [] }
            return [real]
        }
        if need.kind == .own {
            // A writer to the watched folder may put a link there.
            guard let real = ground.resolve(need.path), let name = real.lastComponent,
                ground.resolve(need.path.removingLastComponent())?.appending(name) == real
            else { return [] }
            return [real]
        }
        let real = Self.nearest(need.path, on: ground)
        if real == "/" {
            throw Refusal(
                "\(need.path.display): create it, or a folder to mount it in; no folder above it exists except /")
        }
        guard need.kind == .coming else { return [real] }
        // A rule covers the present files: for a later mount, the kernel asks the folder above.
        if let point = ground.missing(at: need.path) ?? ground.missing(at: real) {
            let above = Self.nearest(point.removingLastComponent(), on: ground)
            if above == "/" { throw Self.mounted(point, type: "the fstab entry") }
            return [above]
        }
        guard let mount = ground.mounts.mount(of: real), mount.point != "/" else { return [real] }
        let above = mount.point.removingLastComponent()
        if above != "/" { return [above] }
        if mount.comesAndGoes { throw Self.mounted(mount.point, type: mount.type) }
        return [real]
    }

    /// A new mount there would be closed to the agent.
    private static func mounted(_ path: FilePath, type: String) -> Refusal {
        Refusal(
            "\(path.display): mount \(type) one folder deeper; a new mount there needs access to the folder above, which is /"
        )
    }

    /// The path, or its nearest existing parent, without symlinks.
    private static func nearest(_ path: FilePath, on ground: FileSystemLayout) -> FilePath {
        var path = path
        while path != "/", !path.isEmpty {
            if let real = ground.resolve(path) { return real }
            path.removeLastComponent()
        }
        return "/"
    }

    /// The folders in which a file and its link targets can be replaced; the file itself where that folder is `/`.
    private static func folders(of file: FilePath, on ground: FileSystemLayout) -> [FilePath] {
        let real = ground.resolve(file)
        let named = ground.resolve(file.removingLastComponent())
        return [named, real?.removingLastComponent()].compactMap { folder in
            folder == "/" ? real : folder
        }
    }
}

/// A running agent's confinement, for display.
package struct ConfinementReport: Codable, Sendable, Equatable {
    /// The version of Landlock; nil without confinement.
    package var landlock: Int?
    /// How many system calls are filtered; nil without a filter.
    package var denied_calls: Int?
    /// Why none are filtered, although Landlock confines it.
    package var calls_reason: String?
    /// Why it is not confined.
    package var reason: String?
    /// Folders that it may read, escaped, with everything below them.
    package var readable: [String]
    /// Those in which it may create, change and remove files.
    package var writable: [String]

    /// - Parameter callsReason: why no system call is filtered; nil if some are.
    package init(landlock: Int, callsReason: String?, _ rules: [AccessRule]) {
        self.landlock = landlock
        denied_calls = callsReason == nil ? CallFilter.count : nil
        calls_reason = callsReason
        readable = rules.map(\.path.display)
        writable = rules.filter(\.mayWrite).map(\.path.display)
    }

    package init(reason: String) {
        self.reason = reason
        (readable, writable) = ([], [])
    }

    /// Whether it may read the file at `path`.
    package func reaches(_ path: FilePath) -> Bool { isBelow(path, readable) }

    /// Whether it may create files in that folder.
    package func mayWrite(in folder: FilePath) -> Bool { isBelow(folder, writable) }

    private func isBelow(_ path: FilePath, _ places: [String]) -> Bool {
        if landlock == nil { return true }
        let real = FilePath((path.realPath ?? path).display)
        return places.contains { real.isWithin(FilePath($0)) }
    }

    var event: AgentEvent {
        guard let landlock else { return .agentUnconfined(reason: reason ?? "") }
        return .agentConfined(
            landlock: landlock, places: readable.count, calls: denied_calls ?? 0, reason: calls_reason)
    }
}
