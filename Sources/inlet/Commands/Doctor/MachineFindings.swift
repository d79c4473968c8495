import InletAgent
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import SystemPackage

// Parts of `inlet doctor`: the program, the machine and the state directory.

extension Findings {
    // MARK: - Inlet

    /// The version, and the agent that runs, or why none may run.
    ///
    /// - Parameter isOfService: whether the package's service reads this configuration.
    mutating func noteProgram(_ agent: StatusReport?, at socket: FilePath, isOfService: Bool) {
        #if DEBUG
            let build = "a debug build"
        #else
            let build = "a release build"
        #endif
        add(.fine, "version", "\(Inlet.release), \(build)")
        // Another configuration's agent is not this service.
        let unit = isOfService ? MachineFacts.unit(InitService.unit) : nil
        if let unit {
            let words = [unit.isEnabled ? "enabled" : "not enabled", unit.isActive ? "running" : "not running"]
            add(.fine, "service", "\(InitService.unit) is \(words.joined(separator: " and "))")
        }
        let host: AgentHost = unit != nil ? .service : MachineFacts.container != nil ? .container : .person
        guard let agent else {
            return add(
                .warning, "agent", "no agent runs, or none answers: nothing is delivered", remedy: host.start,
                topic: .agent)
        }
        add(.fine, "agent", "running\(agent.started_at.map { " since \($0)" } ?? "")")
        if let version = agent.version, version != Inlet.version {
            add(
                .warning, "agent", "it is version \(version), and this command is \(Inlet.version)",
                remedy: host.restart)
        }
        noteAgentUser(at: socket)
    }

    /// Folders are checked with the rights of this command: those of the agent may be others.
    private mutating func noteAgentUser(at socket: FilePath) {
        // The agent answers there: where this user may not look at it, it does not matter who owns it.
        guard let owner = try? FileOwner.ofFolder(socket).owner else { return }
        let own = ProcessSetup.userID
        guard owner != own else { return add(.fine, "user", "this command and the agent are user \(own)") }
        add(
            .fine, "user",
            "the agent is user \(owner), this command is user \(own), whose rights the folders are checked with",
            remedy: "for the agent's rights, run: sudo -u '#\(owner)' inlet doctor")
    }

    /// The system, its container, and the clock.
    mutating func noteMachine() {
        let facts = [MachineFacts.kernel, MachineFacts.distribution, MachineFacts.container.map { "in \($0)" }]
        add(.fine, "machine", facts.compactMap(\.self).joined(separator: ", "))
        add(.fine, "time zone", "\(KeyTemplate.systemZone), for dates in keys without @ZONE")
        let service =
            switch MachineFacts.isClockSynchronised {
            case true?: "a time service keeps it right"
            // Containers and virtual machines get their host's clock.
            case false?: "the kernel knows of no time service that keeps it right"
            case nil: "the kernel does not say whether a time service keeps it right"
            }
        add(.fine, "clock", "\(WallTime.now.rfc3339Seconds); \(service)")
    }

    // MARK: - State

    /// The state directory, its disk, and the journal.
    ///
    /// - Parameters:
    ///   - isInUse: whether an agent has it open.
    ///   - isConfigured: whether it is known to be the right one.
    mutating func noteState(_ path: FilePath, isInUse: Bool, isConfigured: Bool) {
        guard let look = FileLook.glance(at: path), look != .missing else {
            // Whether it can be made matters to a configuration that asks for it.
            return isConfigured ? checkState(path) : add(.fine, "state_dir", "\(path.display) is not there yet")
        }
        checkState(path)
        noteSpace("state_dir", at: path)
        noteJournal(StateDirectory.journal(in: path), isInUse: isInUse)
    }

    private mutating func noteJournal(_ path: FilePath, isInUse: Bool) {
        guard case .regular(let identity, owner: _, links: _)? = FileLook.glance(at: path) else {
            return add(.fine, "journal", "there is none yet")
        }
        let size = ByteText.format(identity.size)
        if isInUse { return add(.fine, "journal", "\(size), in use by the agent") }
        do throws(JournalError) {
            guard var journal = try ReadOnlyJournal(path: path) else {
                return add(.fine, "journal", "it is empty")
            }
            let isRead = try journal.requireSound()
            add(
                .fine, "journal",
                isRead ? "\(size), and sound" : "\(size), too large to be read here; 'inlet queue backup' reads it all")
        } catch {
            add(.wrong, "journal", "\(error)", topic: error.isFull ? .space : .state)
        }
    }

    /// Below this, a disk is as good as full.
    private static let leastBytes: Int64 = 100 << 20
    private static let leastInodes: Int64 = 1000

    /// The kind of the file system at `path`, and its room. Says nothing where nothing is there.
    mutating func noteSpace(_ what: String, at path: FilePath) {
        guard let kind = FileSystemKind.known(of: path) else { return }
        do throws(SystemError) {
            let (free, total) = (try FreeSpace.available(at: path), try FreeSpace.total(at: path))
            let inodes = try FreeSpace.inodes(at: path)
            var text = "on \(kind.name), \(ByteText.format(free)) of \(ByteText.format(total)) free"
            if let inodes { text += ", \(inodes.free) more files possible" }
            let isShort = free < Self.leastBytes || inodes.map { $0.free < Self.leastInodes } ?? false
            add(
                isShort ? .warning : .fine, what, text, remedy: isShort ? "free some space on this disk" : nil,
                topic: isShort ? .space : nil)
        } catch {
            add(.warning, what, error)
        }
    }

    // MARK: - Limits

    /// inotify: what the agent's user has in use, and whether one more instance and watch can be had. The limits are a
    /// user's own.
    mutating func noteWatches(_ agent: StatusReport?, at socket: FilePath) {
        // Without an agent, this user would run it.
        let owner = agent.flatMap { _ in try? FileOwner.ofFolder(socket).owner } ?? ProcessSetup.userID
        let used = WatchNeed.used(by: owner)
        let watches = "\(used.watches) watches of \(WatchNeed.limit.map(String.init) ?? "?")"
        let instances = "\(used.instances) instances of \(WatchNeed.instanceLimit.map(String.init) ?? "?")"
        let own = agent.map { $0.roots.reduce(0) { $0 + ($1.watches ?? 0) } }
        let seen = "in use by user \(owner), as far as this command may see"
        add(.fine, "inotify", "\(watches), \(instances) \(seen)\(own.map { "; the agent has \($0) watches" } ?? "")")
        guard owner == ProcessSetup.userID else { return }
        do throws(SystemError) {
            _ = try Inotify().add("/")
        } catch {
            let remedy =
                error.isWatchLimit
                ? WatchNeed(directories: used.watches).remedy : WatchNeed.instanceRemedy(needed: used.instances)
            add(
                .warning, "inotify", "no more can be had (\(error)); \(Self.polled(agent))", remedy: "sudo \(remedy)",
                topic: .limits)
        }
    }

    /// The effect of a full limit.
    private static func polled(_ agent: StatusReport?) -> String {
        guard let agent else { return "an agent that starts polls the folders" }
        let folders = agent.roots.reduce(0) { $0 + $1.polled }
        return folders > 0 ? "the agent polls \(folders.counted("folder"))" : "the agent has what it needs now"
    }

    private static let leastMemory: Int64 = 64 << 20

    /// Descriptors and memory.
    mutating func noteResources() {
        let limit = ProcessSetup.descriptorLimit
        let isShort = limit.most < UInt64(StartNeed.descriptors)
        add(
            isShort ? .warning : .fine, "open files", "\(limit.now) may be open, \(limit.most) after raising the limit",
            remedy: isShort ? "raise LimitNOFILE= or 'ulimit -n'" : nil, topic: isShort ? .limits : nil)
        guard let memory = MachineFacts.memory(ofUnit: InitService.unit) else { return }
        var text = "\(ByteText.format(memory.available)) of \(ByteText.format(memory.total)) available"
        var isTight = memory.available < Self.leastMemory
        if let most = memory.limit {
            text += "; the limit is \(ByteText.format(most))"
            if let used = memory.used {
                text += ", of which \(ByteText.format(used)) is used"
                // Its use has the page cache in it, which is given back: only the limit itself tells.
                isTight = isTight || most < Self.leastMemory
            }
        }
        add(
            isTight ? .warning : .fine, "memory", text,
            remedy: isTight ? "end other programs, or raise the container's or the service's MemoryMax=" : nil,
            topic: isTight ? .limits : nil)
    }
}

/// The owner of an agent's process: whoever starts and stops it.
private enum AgentHost {
    /// The package's service.
    case service
    case container
    /// Somebody, or a program of theirs.
    case person

    var start: String {
        switch self {
        case .service: "see 'systemctl status inlet', then: sudo systemctl start inlet"
        case .container: "start the container, or an agent in it with 'inlet run'"
        case .person: "start one with 'inlet run'"
        }
    }

    var restart: String {
        switch self {
        case .service: "restart the agent: sudo systemctl restart inlet"
        case .container: "restart the container"
        case .person: "stop the agent, and start it again with 'inlet run'"
        }
    }
}
