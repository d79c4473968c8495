import CLinux
import Glibc

/// SIGTERM and Ctrl-C end the process with 0 as long as this lives, as they do when the agent runs: the first process of a
/// container has no other end by them. What they did before comes back; one that was ignored stays so.
package final class LeavingSignals: Sendable {
    private let former: [(number: CInt, action: sigaction)]

    package init() {
        former = [SIGTERM, SIGINT].compactMap { number in
            var action = sigaction()
            sigaction(number, nil, &action)
            let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            if handler == unsafeBitCast(SIG_IGN, to: Int.self) { return nil }
            signal(number) { _ in _exit(0) }
            return (number, action)
        }
    }

    deinit {
        for (number, action) in former {
            var action = action
            sigaction(number, &action, nil)
        }
    }
}
