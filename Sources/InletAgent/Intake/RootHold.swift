package import InletCore
package import InletLinux
package import SystemPackage

/// Sees to it that one agent alone takes the files of a watched folder, unless several are meant to (`shared: true`).
package struct RootHold: Sendable {
    enum Outcome: Sendable {
        /// It may be watched, with the lock where one could be had; `doubt` says why somebody should know that there is none.
        case watch(WatchLock?, doubt: String?)
        /// Another agent watches it, which says this of itself.
        case standBy(String)
    }

    private let settings: WatchSettings
    private let stateDirectory: FilePath

    package init(_ settings: WatchSettings, stateDirectory: FilePath) {
        (self.settings, self.stateDirectory) = (settings, stateDirectory)
    }

    private static let patience = Duration.seconds(5)
    /// Who lets go may only be starting again: nobody takes over for that, and sends what the other one has delivered.
    private static let grace = Duration.seconds(10)
    /// Before another holder is asked for again, where nothing tells.
    private static let pause = Duration.seconds(30)

    /// Cards are never written to, and can be taken out only while nothing of them is open.
    package static func isLocked(_ settings: WatchSettings) -> Bool { settings.pattern == nil && !settings.isShared }

    private var own: String { "inlet on \(ProcessSetup.hostName), state_dir \(stateDirectory.display)" }

    /// Makes the lock's folder in each of these where that can be made, before the agent gives up what it need not write to.
    package static func prepare(_ watched: [WatchSettings]) {
        for watch in watched where isLocked(watch) {
            // Silence is right: where it cannot be made there is no lock; `inlet check` says so.
            _ = try? Folder(watch.path).folder(WatchLock.folder, making: 0o755, asFolderOwner: true)
        }
    }

    /// Blocks.
    func take() -> Outcome {
        guard Self.isLocked(settings) else { return .watch(nil, doubt: nil) }
        let (root, text) = (settings.path, "\(own), process \(ProcessSetup.processID)")
        do {
            let taken = try LoopThread.result(name: "lock", within: Self.patience) { () throws(SystemError) in
                try WatchLock.take(in: root, as: text)
            }
            switch taken {
            case .ours(let lock): return .watch(lock, doubt: nil)
            case .theirs(let holder): return .standBy(holder)
            case nil:
                return .watch(
                    nil,
                    doubt:
                        "its lock (.inlet/lock) cannot be had within \(DurationText.format(Self.patience)), and it is "
                        + "watched without: another agent that watches it too would not be noticed")
            }
        } catch  where error.isPermission || error.code == .readOnlyFileSystem {
            // Where it cannot be written there is none; `inlet check` says so.
            return .watch(nil, doubt: nil)
        } catch {
            return .watch(
                nil,
                doubt: "its lock (.inlet/lock) cannot be had (\(error)), and it is watched without: another agent that "
                    + "watches it too would not be noticed")
        }
    }

    /// The agent that watches the folder now, if it is another one than that of our state directory. Makes nothing. Blocks.
    package func stranger() throws(SystemError) -> String? {
        guard let holder = try WatchLock.holder(in: settings.path) else { return nil }
        return holder.hasPrefix("\(own), process ") ? nil : holder
    }

    /// Waits until whoever has the lock may have let go of it, or something else is to be looked at. Blocks.
    func wait(_ waker: Waker) {
        let end = ContinuousClock.now.advanced(by: Self.pause)
        do {
            let inotify = try Inotify.orSilent()
            _ = try inotify.add(settings.path.pushing(WatchLock.folder))
            // What was let go of before the watch was set would wake nobody.
            if try WatchLock.holder(in: settings.path) != nil { _ = try inotify.wait(until: end, waker: waker) }
            guard try WatchLock.holder(in: settings.path) == nil else { return }
            _ = try waker.wait(until: .now.advanced(by: Self.grace))
        } catch {
            // Silence is right: the next try tells what is wrong.
            _ = try? waker.wait(until: end)
        }
    }
}
