package import InletConfig
package import InletCore
package import InletLinux
internal import InletPipelines
package import SystemPackage

/// What of the file system, and which programs, an agent needs for its configuration.
package struct AccessPlan: Sendable {
    /// A place that is needed, as it is named.
    struct Need: Sendable, Hashable {
        enum Kind: Sendable {
            /// A file that may be replaced by another one of its name, as editors and secret stores do.
            case file
            /// The same of one that may never be there.
            case possibleFile
            /// A folder that is there while the agent runs.
            case folder
            /// A folder that may be missing, and on which something may be mounted, at any time.
            case coming
            /// A folder that Inlet makes in a watched one; where it is not there, it is done without.
            case own
            /// A folder of which files may still be under way that were taken when it was watched.
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
    ///   - former: what was watched before, as `FormerRoots` finds it.
    ///   - home: where destinations look for credentials that no key names.
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
        for path in [config.file] + config.credentialFiles { file(path) }
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
                // What is no `…_file` is a folder that the destination writes to.
                let isFile = key.name.hasSuffix("_file")
                needs.append(Need(path: path, kind: isFile ? .file : .coming, mayWrite: !isFile))
            }
        }
        self.needs = needs + Self.watched(settings, former)
        commands = settings.commands
        self.manual = settings.dashboard == nil ? [] : manual
    }

    private static func watched(_ settings: Settings, _ former: FormerRoots.Former) -> [Need] {
        let changesSources = settings.changesSources
        let current = settings.watch.flatMap {
            needs(of: $0, changesSources: changesSources || former.changed.contains($0.path))
        }
        // Whoever requires it wants what the configuration names, and nothing else.
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
            + (RootOwnership.isLocked(watch) && !mayWrite ? [lock] : [])
            + elsewhere.map { Need(path: $0, kind: .coming, mayWrite: true) }
    }
}

extension Route {
    /// Whether anything is moved, removed or written beside its files.
    fileprivate var changesSources: Bool {
        onSuccess != .keep || onFailure == .quarantine || receipts == .sidecar
    }
}

extension Settings {
    /// Whether anything is moved, removed or written in watched folders.
    var changesSources: Bool { routes.contains(where: \.changesSources) }

    fileprivate var commands: [CommandPattern] {
        let told = notify.compactMap { if case .exec(let words) = $0.receiver { words } else { nil } }
        let place = Deriver.folder(in: stateDirectory).string + "/"
        return told.map { CommandPattern($0) }
            + routes.flatMap { $0.derive.map { CommandPattern($0.command, place: place) } }
    }
}

/// The file system as far as rules depend on it.
package struct FileSystemLayout: Sendable {
    var mounts: MountTable
    /// Where something is meant to be mounted, as fstab(5) says, now or later.
    var planned: [FilePath] = []
    /// Where a path leads, without symlinks; nil where nothing is.
    var resolve: @Sendable (FilePath) -> FilePath?

    /// Where something is meant to be mounted that the path would lie on, and is not.
    fileprivate func missing(at path: FilePath) -> FilePath? {
        planned.first { point in path.isWithin(point) && !mounts.mounts.contains { $0.point == point } }
    }

    /// This machine's. Blocks.
    package static func current() throws(SystemError) -> FileSystemLayout {
        FileSystemLayout(mounts: try MountTable.current(), planned: MountTable.plannedPoints()) { $0.realPath }
    }
}

extension AccessPlan {
    /// What the libraries and the agent itself read: resolver, certificates, time zones, file types, what the kernel says of
    /// processes, mounts, disks and processors.
    private static let systemFolders: [FilePath] = [
        "/etc", "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/proc", "/sys/fs/cgroup",
        "/sys/devices/system", "/dev/disk", "/dev/random", "/dev/urandom", "/run/udev", "/run/systemd",
        "/run/resolvconf",
        "/run/NetworkManager", "/run/connman", "/run/nscd", "/var/lib/ca-certificates",
    ]
    /// Often symlinks to elsewhere.
    private static let systemFiles: [FilePath] = ["/etc/resolv.conf", "/etc/hosts", "/etc/localtime"]
    private static let written: [FilePath] = ["/dev/null"]

    /// The rules by which an agent can do its work, also with folders that come later.
    ///
    /// - Throws: why confining it would keep it from its work.
    package func rules(on ground: FileSystemLayout) throws(Refusal) -> [AccessRule] {
        var rules: [AccessRule] = []
        for need in needs {
            rules += try places(of: need, on: ground).map { AccessRule($0, mayWrite: need.mayWrite) }
        }
        rules += (Self.systemFolders + manual).compactMap { ground.resolve($0).map { AccessRule($0) } }
        rules += Self.systemFiles.flatMap { Self.folders(of: $0, on: ground) }.map { AccessRule($0) }
        rules += Self.written.compactMap { ground.resolve($0).map { AccessRule($0, mayWrite: true) } }
        // One for each place: the stronger.
        var strongest: [FilePath: Bool] = [:]
        for rule in rules { strongest[rule.path] = strongest[rule.path] ?? false || rule.mayWrite }
        return strongest.map { AccessRule($0.key, mayWrite: $0.value) }.sorted { $0.path.string < $1.path.string }
    }

    /// The first place that this needs and `rules` do not allow; nil when there is none.
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

    /// The list of former folders lies where the agent writes: what it says opens no place that holds the agent's own files,
    /// or the system's, nor one below the system's.
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
            // Who may write to the watched folder may put a link there.
            guard let real = ground.resolve(need.path), let name = real.lastComponent,
                ground.resolve(need.path.removingLastComponent())?.appending(name) == real
            else { return [] }
            return [real]
        }
        let real = Self.nearest(need.path, on: ground)
        if real == "/" {
            throw Refusal(
                "\(need.path.display) is not there, nor any folder above it but /; make it, or a folder to mount it in")
        }
        guard need.kind == .coming else { return [real] }
        // A rule holds for what is there now: of something that is mounted later, or anew, the kernel asks the folder above.
        if let point = ground.missing(at: need.path) ?? ground.missing(at: real) {
            let above = Self.nearest(point.removingLastComponent(), on: ground)
            if above == "/" { throw Self.mounted(point, type: "what fstab names") }
            return [above]
        }
        guard let mount = ground.mounts.mount(of: real), mount.point != "/" else { return [real] }
        let above = mount.point.removingLastComponent()
        if above != "/" { return [above] }
        if mount.comesAndGoes { throw Self.mounted(mount.point, type: mount.type) }
        return [real]
    }

    /// What is mounted there may be mounted anew, and would then be closed to the agent.
    private static func mounted(_ path: FilePath, type: String) -> Refusal {
        Refusal(
            "\(path.display): \(type) may be mounted there anew, which only the folder above could allow, and that is /; "
                + "mount it one folder deeper")
    }

    /// The path, or the nearest folder above it that is there, without symlinks.
    private static func nearest(_ path: FilePath, on ground: FileSystemLayout) -> FilePath {
        var path = path
        while path != "/", !path.isEmpty {
            if let real = ground.resolve(path) { return real }
            path.removeLastComponent()
        }
        return "/"
    }

    /// The folders in which a file and what it leads to can be replaced; the file itself where that folder is `/`.
    private static func folders(of file: FilePath, on ground: FileSystemLayout) -> [FilePath] {
        let real = ground.resolve(file)
        let named = ground.resolve(file.removingLastComponent())
        return [named, real?.removingLastComponent()].compactMap { folder in
            folder == "/" ? real : folder
        }
    }
}

/// What a running agent has given up, for whoever asks.
package struct ConfinementReport: Codable, Sendable, Equatable {
    /// The version of Landlock that holds it; nil where nothing does.
    package var landlock: Int?
    /// How many system calls it has given up; nil where it has none.
    package var denied_calls: Int?
    /// Why it has them all, though Landlock holds it.
    package var calls_reason: String?
    /// Why nothing does.
    package var reason: String?
    /// Folders that it may read, escaped, with all that is below them.
    package var readable: [String]
    /// Those of them in which it may make, change and remove files.
    package var writable: [String]

    /// - Parameter callsReason: why no system call is given up; nil where they are.
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

    /// Whether it may read the file at `path`, as far as this holds it back.
    package func reaches(_ path: FilePath) -> Bool { isBelow(path, readable) }

    /// Whether it may make files in that folder.
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
