internal import InletLinux
internal import ServiceLifecycle

/// Has every watched folder looked at anew when something is mounted or unmounted: inotify says nothing of what is mounted
/// over a folder. Sleeps until then.
struct MountWatcher: Service {
    private let shared: Shared
    private let thread = BlockingPool(name: "mounts", threads: 1)
    private let waker: Waker

    init(_ shared: Shared) throws(SystemError) { (self.shared, waker) = (shared, try Waker()) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                await withTaskExecutorPreference(self.thread) { self.follow() }
            } onCancel: {
                self.waker.wake()
            }
        }
        // A service that ends by itself would end the agent.
        try? await gracefulShutdown()
    }

    private func follow() {
        do {
            let mounts = try MountWatch(onlyMounts: true)
            while !Task.isCancelled {
                guard try mounts.wait(until: nil, waker: waker) else { continue }
                shared.roots.mountsChanged()
            }
        } catch {
            // Rescans and restarts find the same, only later.
            shared.log.emit(.agentTrouble(reason: "mounts are not followed: \(error)"))
        }
    }
}
