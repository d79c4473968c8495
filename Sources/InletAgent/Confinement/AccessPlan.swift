package import InletConfig
package import InletCore
internal import InletLinux
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
    }

    /// Why confining the agent would keep it from its work.
    package enum Obstacle: Error, Sendable, Equatable, CustomStringConvertible {
        /// Neither the folder nor one above it is there.
        case missing(FilePath)
        /// What is mounted there may be mounted anew, and would then be closed to the agent.
        case mounted(FilePath, type: String)

        package var description: String {
            switch self {
            case .missing(let path):
                "\(path.display) is not there, nor any folder above it but /; make it, or a folder to mount it in"
            case .mounted(let path, let type):
                "\(path.display): \(type) may be mounted there anew, which only the folder above could allow, and that is /; "
                    + "mount it one folder deeper"
            }
        }
    }

    let needs: [Need]
    package let commands: [CommandPattern]

    /// - Parameters:
    ///   - former: what was watched before, as `FormerRoots` finds it.
    ///   - home: where destinations look for credentials that no key names.
    ///   - environment: of this process.
    package init(
        _ config: LoadedConfig, former: FormerRoots.Former = FormerRoots.Former(), home: FilePath?,
        environment: (String) -> String?
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
            for key in Self.pathKeys(of: destination.type) {
                guard let path = destination.values.string(key).map({ FilePath($0) }) else { continue }
                if key.hasSuffix("_file") {
                    file(path)
                } else {
                    needs.append(Need(path: path, kind: .coming, mayWrite: true))
                }
            }
        }
        self.needs = needs + Self.watched(settings, former)
        commands = settings.commands
    }

    /// What is no `…_file` is a folder that the destination writes to.
    private static func pathKeys(of type: String) -> [String] {
        let keys = DestinationKinds.named(type)?.type.keys ?? []
        return keys.compactMap { if case .path = $0.kind { $0.name } else { nil } }
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
            + (RootHold.isLocked(watch) && !mayWrite ? [lock] : [])
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
