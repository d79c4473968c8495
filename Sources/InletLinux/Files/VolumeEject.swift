import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Takes a card or disk out of the system: writes everything to it, unmounts it, and switches an external disk off.
///
/// Never lazily: programs go on writing to a file system that is unmounted lazily. Where udisks2 answers, it unmounts,
/// because it lets users do that by the rules of polkit(8). Elsewhere umount(8) does, or fusermount3(1).
package enum VolumeEject {
    /// One sentence with its remedy, without a full stop.
    package enum Outcome: Sendable, Equatable {
        /// It may be unplugged.
        case out(String)
        case refused(String)
    }

    /// The programs that `eject` starts, for a process host.
    package static let commands = [
        udisks("unmount", "{in}"), udisks("power-off", "{in}"), ["umount", "--", "{in}"],
        ["fusermount3", "-u", "--", "{in}"], ["fusermount", "-u", "--", "{in}"],
    ].map { CommandPattern($0) }

    /// - Parameters:
    ///   - timeout: for everything; a program that takes longer is ended.
    ///   - pool: where it blocks.
    package static func eject(_ mountPoint: FilePath, timeout: Duration, pool: BlockingPool) async -> Outcome {
        await Ejection(point: mountPoint, timeout: timeout, pool: pool).run()
    }

    static func udisks(_ verb: String, _ device: String) -> [String] {
        ["udisksctl", verb, "--no-user-interaction", "-b", device]
    }
}

/// One try to eject a volume.
struct Ejection: Sendable {
    /// Why a step failed.
    enum Failure: Error, Sendable, Equatable {
        /// The tool does not exist here, or has no service behind it.
        case unavailable
        case busy
        case denied(String)
        case timedOut
        case failed(String)

        /// The program's words, in parentheses.
        var said: String {
            switch self {
            case .denied(let said), .failed(let said): " (\(said))"
            case .unavailable, .busy, .timedOut: ""
            }
        }
    }

    private let point: FilePath
    private let timeout: Duration
    private let pool: BlockingPool
    /// For the programs.
    private let environment: [(name: String, value: [UInt8])]
    private let sysfs: FilePath
    private let switchesOff: Bool
    private let deadline: ContinuousClock.Instant

    /// A program that just looks around on the volume is waited for.
    private static let busyPatience = Duration.seconds(3)
    private static let busyPause = Duration.milliseconds(300)
    private static let grace = Duration.seconds(1)

    /// - Parameter bus: the address of the system bus; nil for the usual one.
    init(
        point: FilePath, timeout: Duration, pool: BlockingPool, switchesOff: Bool = true, bus: String? = nil,
        sysfs: FilePath = "/sys"
    ) {
        self.switchesOff = switchesOff
        (self.point, self.timeout, self.pool, self.sysfs) = (point, timeout, pool, sysfs)
        deadline = .now.advanced(by: timeout)
        environment =
            [("PATH", ProgramFinder.path), ("LANG", "C.UTF-8")].map { ($0, Array($1.utf8)) }
            + (bus.map { [("DBUS_SYSTEM_BUS_ADDRESS", Array($0.utf8))] } ?? [])
    }

    func run() async -> VolumeEject.Outcome {
        do throws(SystemError) {
            let table = try await mounts()
            guard let mount = table.mount(of: point), mount.point == point else {
                return .out("nothing is mounted at \(point.display); take the card out")
            }
            if let other = table.others(of: mount).first {
                return .refused("\(point.display) is mounted at \(other.point.display) too; unmount that first")
            }
            let device = await pool.run { BlockDevice(of: mount, sysfs: sysfs) }
            let content = await pool.run { device?.backingFile }
            let isPulled = device == nil && mount.source.starts(with: "/dev")
            if !isPulled, let reason = await sync() { return .refused(reason) }
            if let failure = try await unmount(mount, device) { return .refused(await reason(failure, mount)) }
            await pool.run { if let device { CardMount.release(device, at: point) } }
            if isPulled { return .out("\(point.display) was pulled before it was unmounted; it is unmounted now") }
            return await out(mount, device, of: content)
        } catch {
            return .refused("\(point.display) cannot be ejected: \(error)")
        }
    }

    private func mounts() async throws(SystemError) -> MountTable {
        try await pool.run { () throws(SystemError) in try MountTable.current() }
    }

    // MARK: - Steps

    /// Writes what waits in memory. - Returns: why it may not go on.
    private func sync() async -> String? {
        do throws(SystemError) {
            let left = deadline - .now
            let isDone = try await pool.run { () throws(SystemError) in
                try LoopThread.result(name: "sync", within: left) { [point] () throws(SystemError) in
                    let folder = try Descriptor(opening: point, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
                    _ = try SystemCall.result("syncfs", point) { inlet_sync_file_system(folder.number) }
                    return true
                }
            }
            return isDone == nil ? late : nil
        } catch {
            // Unmounting writes it too.
            if error.isPermission || error.isMissing { return nil }
            return "\(point.display) could not be written: \(error); eject it again, and check what was written to it"
        }
    }

    /// - Returns: why it is still mounted; nil once it is not.
    private func unmount(_ mount: MountTable.Mount, _ device: BlockDevice?) async throws(SystemError) -> Failure? {
        let busyUntil = min(deadline, .now.advanced(by: Self.busyPatience))
        var wasBusy = false
        while true {
            var failure = await unmountOnce(mount, device)
            // The kernel gives a free number to the next mount.
            let isThere = try await mounts().mounts.contains { $0.id == mount.id && $0.point == mount.point }
            if !isThere { return nil }
            wasBusy = wasBusy || failure == .busy
            if wasBusy, failure == .timedOut { failure = .busy }
            guard failure == .busy, .now.advanced(by: Self.busyPause) < busyUntil, await Task.rest(for: Self.busyPause)
            else { return failure ?? .failed("it is still mounted here") }
        }
    }

    private func unmountOnce(_ mount: MountTable.Mount, _ device: BlockDevice?) async -> Failure? {
        var commands: [[String]] = []
        if let device { commands.append(VolumeEject.udisks("unmount", device.node.string)) }
        if mount.type.hasPrefix("fuse"), ProcessSetup.userID != 0 {
            commands += ["fusermount3", "fusermount"].map { [$0, "-u", "--", point.string] }
        }
        commands.append(["umount", "--", point.string])
        var first: Failure?
        for command in commands {
            do throws(Failure) {
                try await call(command)
                return nil
            } catch {
                switch error {
                case .unavailable: continue
                case .failed: first = first ?? error
                // An administrator's no counts for the other programs as well.
                case .busy, .timedOut, .denied: return error
                }
            }
        }
        return first ?? .unavailable
    }

    private func call(_ command: [String]) async throws(Failure) {
        guard deadline > .now else { throw .timedOut }
        guard let program = ProgramFinder.find(command[0]) else { throw .unavailable }
        let child = ChildProcess(
            [program.string] + command.dropFirst(), environment: environment, timeout: deadline - .now,
            grace: Self.grace, patience: Self.grace)
        let outcome: ChildProcess.Outcome
        do throws(SystemError) { outcome = try await child.run(on: pool) } catch { throw .failed("\(error)") }
        let said = DisplayText.escape(outcome.errors.suffix(300).split(separator: UInt8(ascii: "\n")).last ?? [])
        switch outcome.end {
        case .exited(0): return
        case .exited(let code): throw Self.failure(said.isEmpty ? "\(command[0]) ended with \(code)" : said)
        case .signalled(let signal): throw .failed("\(command[0]) was ended by signal \(signal)")
        case .timedOut, .stuck: throw .timedOut
        case .cancelled: throw .failed("stopped")
        }
    }

    /// By the words of udisksctl(1), umount(8) and fusermount(1).
    static func failure(_ said: String) -> Failure {
        func says(_ words: String...) -> Bool { words.contains { said.lowercased().contains($0) } }
        if says("devicebusy", "is busy", "resource busy") { return .busy }
        if says("notauthorized", "not authorized", "superuser", "not permitted", "permission denied") {
            return .denied(said)
        }
        if says("connecting to the udisks daemon", "looking up object for device", "serviceunknown") {
            return .unavailable
        }
        return says("timeout was reached", "timedout") ? .timedOut : .failed(said)
    }

    // MARK: - Afterwards

    /// - Parameter content: the file behind a loop device, when it was mounted.
    private func out(
        _ mount: MountTable.Mount, _ device: BlockDevice?, of content: String?
    ) async -> VolumeEject.Outcome {
        guard let device else { return .out("\(point.display) is unmounted") }
        // A loop device may be free by now, and another file's.
        if await pool.run({ device.backingFile == content }), await staysHeld(device.node) {
            return .refused(
                "\(point.display) is unmounted here, but another container still uses \(device.node.display); unmount it "
                    + "there first")
        }
        let takeOut = "\(point.display) is unmounted; take the card out"
        // Off, a reader would take no other card until somebody replugs it.
        guard switchesOff, !device.hasRemovableMedium, let port = device.usbPort else { return .out(takeOut) }
        let (mounted, disk) = await pool.run { (Self.isMounted(device.sharingPort), device.disk.node) }
        if mounted { return .out("\(takeOut): its disk stays on, because another part of it is mounted") }
        do throws(Failure) {
            try await call(VolumeEject.udisks("power-off", disk.string))
        } catch {
            // Only root may, where udisks2 cannot.
            if await !pool.run({ Self.remove(port) }) {
                return .out("\(point.display) is unmounted, and its disk stays on\(error.said); unplug it")
            }
        }
        return .out("\(point.display) is unmounted, and its disk is off; unplug it")
    }

    /// Whether a device is in use for longer than a program takes that just looks what is on it.
    private func staysHeld(_ node: FilePath) async -> Bool {
        let end = min(deadline, .now.advanced(by: Self.busyPatience))
        while await pool.run({ Self.isHeld(node) }) {
            guard .now.advanced(by: Self.busyPause) < end, await Task.rest(for: Self.busyPause) else { return true }
        }
        return false
    }

    /// Whether something still uses an unmounted device, such as a mount in another namespace: opening it alone then
    /// fails (open(2), O_EXCL). Where this user may not open it, nothing is known.
    private static func isHeld(_ node: FilePath) -> Bool {
        do throws(SystemError) {
            _ = try Descriptor(opening: node, O_RDONLY | O_EXCL | O_NONBLOCK)
            return false
        } catch {
            return error.code == .resourceBusy
        }
    }

    private static func isMounted(_ devices: [BlockDevice]) -> Bool {
        // Unknown counts as mounted.
        guard !devices.isEmpty, let table = try? MountTable.current() else { return true }
        return table.mounts.contains { mount in
            BlockDevice(of: mount).map { devices.map(\.node).contains($0.node) } ?? false
        }
    }

    /// Switches a USB device off as its driver goes. - Returns: false where that is not allowed.
    private static func remove(_ port: FilePath) -> Bool {
        let path = port.appending("remove")
        do throws(SystemError) {
            let file = try Descriptor(opening: path, O_WRONLY)
            try Descriptor.write([UInt8(ascii: "1")], to: file.number, path)
            return true
        } catch {
            // The person unplugs a disk that is still on: all of it is unmounted.
            return false
        }
    }

    // MARK: - Reasons

    private var late: String {
        "\(point.display) did not come out within \(DurationText.format(timeout)); leave the card in, and eject it again later"
    }

    private func reason(_ failure: Failure, _ mount: MountTable.Mount) async -> String {
        switch failure {
        case .busy:
            let users = await pool.run { OpenWriters.users(of: inlet_device(mount.major, mount.minor)) }
            if users.contains(where: { $0.process == ProcessSetup.processID }) {
                return "\(point.display) is in use by Inlet itself; eject it again when its files are copied"
            }
            guard let first = users.first else {
                return "\(point.display) is in use by a program that this user may not see; as root, find it with "
                    + "'fuser -vm \(point.display)', end it, and eject the card again"
            }
            let rest = users.count > 1 ? " and \(users.count - 1) more" : ""
            return "\(point.display) is in use by \(first.text)\(rest); close its files there, and eject the card again"
        case .denied(let said):
            return
                "this user may not unmount \(point.display): \(said); eject it as root, or install the polkit rule for cards"
        case .timedOut: return late
        case .unavailable:
            return "no program here can unmount \(point.display); install udisks2, or unmount it as root"
        case .failed(let said): return "\(point.display) could not be unmounted: \(said); unmount it as root"
        }
    }
}

extension MountTable {
    /// The other visible places of the same file system.
    func others(of mount: Mount) -> [Mount] {
        mounts.filter { other in
            other.id != mount.id && other.point != mount.point && other.major == mount.major
                && other.minor == mount.minor && self.mount(of: other.point)?.id == other.id
        }
    }
}
