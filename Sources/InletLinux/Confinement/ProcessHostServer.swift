import CLinux
import Glibc
import InletCore
import Synchronization
import SystemPackage

/// The other side of `ProcessHost`: reads requests from standard input until the agent ends.
package final class ProcessHostServer: Sendable {
    private struct State {
        var commands: [CommandPattern]?
        /// By the commands' positions; empty where the kernel cannot enforce it.
        var folders: [String: RunFolders] = [:]
        var running: [UInt64: Waker] = [:]
        var threads: [UInt64: LoopThread] = [:]
    }

    private let number: CInt
    private let sending = Mutex(())
    private let state = Mutex(State())

    /// The agent names a run's folder; hooks get this process's home.
    private static let places: Set = ["HOME", "TMPDIR"]

    private init(_ number: CInt) { self.number = number }

    /// Answers until the agent ends, and then ends its programs. Blocks.
    package static func serve() {
        inlet_name_thread("inlet-host")
        // It ends when the agent does, even where a terminal or a service manager signals both.
        for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { signal(number, SIG_IGN) }
        ProcessSetup.keepCapabilities()
        answer(on: STDIN_FILENO)
    }

    /// The same on any stream socket, for a process that also does other work. Blocks.
    static func answer(on number: CInt) {
        let server = ProcessHostServer(number)
        while let message = HostMessage.receive(from: server.number), let request = HostRequest(message) {
            server.take(request)
        }
        for waker in server.state.withLock({ Array($0.running.values) }) { waker.wake() }
        while let thread = server.state.withLock({ $0.threads.popFirst()?.value }) { thread.join() }
    }

    private func take(_ request: HostRequest) {
        switch request {
        case .commands(let commands): take(commands)
        case .cancel(let number): state.withLock { $0.running[number] }?.wake()
        case .run(let number, let child): run(number, child)
        case .holders(let number, let files, let isFresh):
            begin(number) { .holders(WriterProbe.ownHolders(of: files, isFresh: isFresh)) }
        case .users(let number, let device): begin(number) { .holders(OpenWriters.ownUsers(of: device)) }
        }
    }

    private func take(_ commands: [CommandPattern]) {
        let places = Set(commands.filter { $0.hasPlaces && !$0.place.isEmpty && Landlock.isAvailable }.map(\.place))
        let folders = Dictionary(uniqueKeysWithValues: places.map { ($0, RunFolders($0)) })
        state.withLock { state in
            if state.commands == nil { (state.commands, state.folders) = (commands, folders) }
        }
    }

    private func run(_ number: UInt64, _ child: ChildProcess) {
        let (command, folders) = state.withLock { state in
            let command = state.commands?.first { $0.matches(child.arguments) }
            return (command, command.flatMap { $0.hasPlaces ? state.folders[$0.place] : nil })
        }
        let folder = folders?.folder(of: child)
        guard let command, let word = command.words.first, folders == nil || folder != nil else {
            return answer(number, .failed(SystemError(call: ProcessHost.call, code: .notPermitted)))
        }
        let waker: Waker
        do throws(SystemError) { waker = try Waker() } catch { return answer(number, .failed(error)) }
        state.withLock { $0.running[number] = waker }
        var child = child
        // Not the path that the agent found: it could have put a program there.
        child.arguments[0] = ProgramFinder.find(word)?.string ?? word
        child.environment = Self.environment(child.environment, hasPlaces: command.hasPlaces)
        child.writesTo = folder
        begin(number) { [child] in
            do throws(SystemError) {
                return .ended(try RunningChild.run(child, waker))
            } catch {
                return .failed(error)
            }
        }
    }

    private static func environment(
        _ given: [(name: String, value: [UInt8])], hasPlaces: Bool
    ) -> [(name: String, value: [UInt8])] {
        var own = [(name: "PATH", value: Array(ProgramFinder.path.utf8))]
        if !hasPlaces, let home = ProcessSetup.homeDirectory { own.append((name: "HOME", value: home.bytes)) }
        return own
            + given.filter { name, _ in
                ChildVariable(rawValue: name) != nil || hasPlaces && places.contains(name)
            }
    }

    /// Answers a request on its own thread: the agent sends no more requests at once than its pools have threads.
    private func begin(_ number: UInt64, _ body: @escaping @Sendable () -> HostResponse) {
        do throws(SystemError) {
            let thread = try LoopThread(name: "request") { [self] in
                let result = body()
                state.withLock { state in
                    state.running[number] = nil
                    state.threads[number] = nil
                }
                answer(number, result)
            }
            // It may have ended already. Until it is joined, its number is not reused.
            state.withLock { $0.threads[number] = $0.running[number] == nil ? nil : thread }
        } catch {
            state.withLock { $0.running[number] = nil }
            answer(number, .failed(error))
        }
    }

    private func answer(_ number: UInt64, _ answer: HostResponse) {
        let message = answer.message(to: number)
        sending.withLock { _ in
            // An agent that has gone needs no answer; the loop notices its end.
            do throws(SystemError) { try message.send(to: self.number) } catch {}
        }
    }
}

/// The folders, one for each run, in which programs write that read strangers' files. The agent names `place`, which is
/// resolved without symlinks that the agent could have put there.
private struct RunFolders: Sendable {
    private let place: FilePath
    /// Only the configuration decides where that is.
    private let base: FilePath
    private let rest: FilePath

    init(_ place: String) {
        self.place = FilePath(place)
        var rest = [self.place.lastComponent].compactMap(\.self)
        var above = self.place.removingLastComponent()
        while above.realPath == nil, let name = above.lastComponent {
            rest.insert(name, at: 0)
            above.removeLastComponent()
        }
        base = above.resolved
        self.rest = FilePath(root: nil, rest)
    }

    /// - Returns: nil where the agent names no folder below `place`.
    func folder(of child: ChildProcess) -> (folder: FilePath, base: FilePath)? {
        let named = child.environment.first { $0.name == "TMPDIR" }.map { FilePath(bytes: $0.value) }
        guard let named, named.isLexicallyNormal, named.isWithin(place), named != place else { return nil }
        let name = named.components.dropFirst(place.components.count)
        return (rest.pushing(FilePath(root: nil, name)), base)
    }
}

/// The variables that the agent may set for a program, besides the search path, the home and its folder: nothing that
/// would make the dynamic linker load something else.
package enum ChildVariable: String {
    case language = "LANG"
    case blockUntrusted = "VIPS_BLOCK_UNTRUSTED"
    case event = "INLET_EVENT"
    case state = "INLET_STATE"
    case route = "INLET_ROUTE"
    case key = "INLET_KEY"
    case url = "INLET_URL"
    case destination = "INLET_DESTINATION"
    case volume = "INLET_VOLUME"
    case path = "INLET_PATH"
    case cardState = "INLET_CARD_STATE"
    case text = "INLET_TEXT"
}
