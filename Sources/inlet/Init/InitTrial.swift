import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import SystemPackage

/// Files that are in a folder already, as far as they were counted.
struct FileCount: Sendable, Equatable {
    /// A person learns nothing from a larger number, and need not wait for it.
    static let (most, patience) = (100_000, Duration.seconds(5))

    var count = 0
    /// Whether there are, or may be, more.
    var isMore = false

    /// `more than 100,000 files`
    var text: String {
        let digits = String(count)
        var grouped = ""
        for (place, digit) in digits.enumerated() {
            if place > 0, (digits.count - place).isMultiple(of: 3) { grouped.append(",") }
            grouped.append(digit)
        }
        return (isMore ? "more than " : "") + grouped + (count == 1 && !isMore ? " file" : " files")
    }

    /// Counts the files below `folder` that Inlet would look at. Blocks.
    mutating func add(_ folder: FilePath, until end: ContinuousClock.Instant, most: Int = most) {
        let ignore = IgnoreList()
        var waiting: [FilePath] = [""]
        while let place = waiting.popLast() {
            do throws(SystemError) {
                var listing = try DirectoryStream(folder.pushing(place))
                while let entry = try listing.next() {
                    if .now > end { return isMore = true }
                    let path = place.appending(entry.name)
                    let isFolder = entry.kind == .directory
                    if ignore.ignoresName(path, isDirectory: isFolder) { continue }
                    if isFolder {
                        waiting.append(path)
                    } else if entry.kind == .regular {
                        if count >= most { return isMore = true }
                        count += 1
                    }
                }
            } catch {
                // Inlet reports a folder that it cannot list, too: here only the number is wanted.
                isMore = true
            }
        }
    }
}

/// Tries what a person has typed, before anything is written.
struct InitTrial: Sendable {
    let rules: InitRules
    /// The user that the agent will run as, where that is another one: the rights of folders are only tried with ours.
    var agentUser: String?

    /// How long a server may take.
    private static let patience = Duration.seconds(20)
    /// How long a disk may take.
    private static let diskPatience = Duration.seconds(10)
    private static let pool = BlockingPool(name: "look", threads: 1)

    /// The result of `body`; nil where its disk does not answer in time. The thread is left behind then. Blocks.
    static func look<Value: Sendable>(
        _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        try LoopThread.result(name: "look", within: diskPatience, body)
    }

    /// Adds the finding that a folder's disk is late, or that another user's rights were not tried.
    private func add(_ what: String, isLate: Bool, to findings: inout Findings) {
        if isLate {
            findings.add(
                .unavailable, what, "its disk does not answer within \(DurationText.format(Self.diskPatience))",
                remedy: "look for a disk or a server of files that hangs")
        } else if let agentUser {
            findings.add(.warning, what, "tested as root; the service is user \(agentUser), and may have fewer rights")
        }
    }

    // MARK: - Destinations

    /// The findings of `inlet check` about this destination.
    func destination(_ target: InitInput.Target, in answers: InitInput) async -> [CheckReport.Finding] {
        var findings = Findings(isJSON: true)
        findings.begin(.destinations)
        let (name, what) = (target.setup.name, "destination \(target.setup.name)")
        do {
            let config = try rules.load(answers)
            let factory = PipelineFactory.standard(config)
            defer { factory.shutdown() }
            guard let settings = config.settings.destinations.first(where: { $0.name == name }) else { return [] }
            let made = try factory.make(settings)
            if let why = whyNotAsked(target) {
                await findings.connect(made, try factory.proxyUse(of: made, settings), why)
                return findings.all
            }
            if let folder = made.folder {
                let look = try await Self.pool.run { () throws(SystemError) in
                    try Self.look { () throws(SystemError) in Self.missing(folder, what) }
                }
                add(what, isLate: look == nil, to: &findings)
                guard let look else { return findings.all }
                if let missing = look { return [missing] + findings.all }
            }
            if let found = await Self.check(made) { return found + findings.all }
            findings.add(
                .unavailable, what, "no answer within \(DurationText.format(Self.patience))",
                remedy: "check the address, and any firewall or proxy in between")
        } catch let fault as SettingFault {
            findings.add(.wrong, what, "'\(fault.key)' \(fault.message)")
        } catch {
            findings.add(.wrong, what, "\(error)")
        }
        return findings.all
    }

    /// Why its credentials are not tried; nil where they are.
    private func whyNotAsked(_ target: InitInput.Target) -> String? {
        if let key = target.setup.renewedLogin, target.values[key] != nil {
            return "its login is not tested now, because each use renews it, and the agent needs it"
        }
        let unset = target.variables.filter { rules.environment[$0]?.isEmpty ?? true }
        return unset.isEmpty
            ? nil : "its credentials are not tested: this shell has no \(unset.joined(separator: ", "))"
    }

    /// nil when the destination does not answer in time.
    private static func check(_ made: Destination) async -> [CheckReport.Finding]? {
        await withTaskGroup(of: [CheckReport.Finding]?.self) { group in
            group.addTask {
                var findings = Findings(isJSON: true)
                findings.begin(.destinations)
                await findings.check(made, upload: false)
                return findings.all
            }
            group.addTask {
                await Task.rest(for: patience)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }

    /// The finding about a folder that is not there: whether it can be made. nil where something is there. Blocks.
    private static func missing(_ folder: FilePath, _ what: String) -> CheckReport.Finding? {
        var findings = Findings(isJSON: true)
        do {
            guard try FileLook.look(at: folder) == .missing else {
                // A share that hangs may still know the name: this asks its server. The check reports its errors.
                _ = try? FreeSpace.available(at: folder)
                return nil
            }
            var parent = folder.removingLastComponent()
            while parent.lastComponent != nil, try FileLook.look(at: parent) == .missing {
                parent.removeLastComponent()
            }
            try DurableFile.requireWritable(parent)
            findings.add(.warning, what, "\(folder.display) is not there yet; it can be made at the end")
        } catch {
            findings.add(.wrong, what, error, because: "The folder is not there, and cannot be made")
        }
        return findings.all.first
    }

    // MARK: - The watched folder

    /// How a folder would be watched, and how many files it holds.
    func folder(of answers: InitInput) async -> (findings: [CheckReport.Finding], files: FileCount) {
        let watch: WatchSettings
        do {
            guard let first = try rules.load(answers).settings.watch.first else { return ([], FileCount()) }
            watch = first
        } catch {
            // These answers were accepted just now; a secret's file has gone since, which the end reports.
            return ([], FileCount())
        }
        let what = "watch \(watch.path.display)"
        var own = Findings(isJSON: true)
        own.begin(.watch)
        do throws(SystemError) {
            let found = try await Self.pool.run { () throws(SystemError) in
                try Self.look { () throws(SystemError) in Self.look(at: watch, what) }
            }
            add(what, isLate: found == nil, to: &own)
            return ((found?.findings ?? []) + own.all, found?.files ?? FileCount())
        } catch {
            own.add(.wrong, what, error)
            return (own.all, FileCount())
        }
    }

    private static func look(
        at watch: WatchSettings, _ what: String
    ) -> (findings: [CheckReport.Finding], files: FileCount) {
        var (findings, files) = (Findings(isJSON: true), FileCount())
        findings.begin(.watch)
        let end = ContinuousClock.now.advanced(by: FileCount.patience)
        if let pattern = watch.pattern {
            let folders = RootCheck.folders(of: pattern)
            for folder in folders { files.add(folder, until: end) }
            let now = folders.isEmpty ? "none" : folders.map(\.display).joined(separator: ", ")
            findings.add(.fine, what, "a pattern: its folders are watched as they appear; now: \(now)")
            return (findings.all, files)
        }
        do {
            guard try FileLook.look(at: watch.path) != .missing else {
                findings.add(.warning, what, "\(watch.path.display) is not there yet")
                return (findings.all, files)
            }
            guard !RootCheck.isBlocked(watch.path) else {
                findings.add(.wrong, what, "\(watch.path.display): \(RootCheck.reason(watch.path))")
                return (findings.all, files)
            }
            var listing = try DirectoryStream(watch.path)
            _ = try listing.next()
            findings.add(.fine, what, "\(watch.path.display): readable, \(Self.strategy(watch))")
            files.add(watch.path, until: end)
        } catch {
            findings.add(.wrong, what, error)
        }
        return (findings.all, files)
    }

    /// `ext4, watched by inotify`, or `nfs, polled every 30s or less often (a network share)`
    private static func strategy(_ watch: WatchSettings) -> String {
        let kind = FileSystemKind.known(of: watch.path)?.name ?? "an unknown file system"
        let way = WatchModes(of: watch).way(for: "").way
        let how =
            way.isPolled ? "polled every \(DurationText.format(watch.poll)) or less often" : "watched by inotify"
        return "\(kind), \(how) (\(way.reason))"
    }
}

extension Findings {
    /// Whether a destination's server can be reached, without its credentials.
    fileprivate mutating func connect(_ made: Destination, _ use: ProxyUse?, _ why: String) async {
        let what = "destination \(made.name)"
        guard let use else { return add(.fine, what, why) }
        do {
            try await use.connect()
            add(.fine, what, "the server can be reached; \(why)")
        } catch {
            add(error, at: made.name)
        }
    }
}
