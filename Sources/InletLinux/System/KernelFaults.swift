#if DEBUG
    import Glibc
    import InletCore
    import Synchronization
    package import SystemPackage

    /// Which calls on files fail, with what, and for how long: drawn from a seed, so that a run can be repeated.
    ///
    /// About one call in `every` begins a fault: that call alone fails, or it and the next ones of its name. Only calls on what is in one
    /// of the folders `below` do, so that agents of other tests in the same process see nothing of it.
    package struct KernelFaultPlan: Sendable {
        package let below: [FilePath]
        private let every: Double
        private var left: Int
        private var random: SeededGenerator
        /// Calls that go on failing, and how often.
        private var lasting: [String: (code: Errno, calls: Int)] = [:]
        /// The calls that failed.
        package private(set) var injected: [(call: String, code: Errno, path: FilePath)] = []

        /// What the calls answer by their manual pages when a disk, a server, a limit or a person is in the way.
        private static let codes: [String: [Errno]] = [
            "stat": [.ioError, .staleNFSFileHandle, .permissionDenied, .noMemory],
            "open": [.ioError, .staleNFSFileHandle, .permissionDenied, .tooManyOpenFiles, .noMemory],
            "read": [.ioError, .staleNFSFileHandle],
            "opendir": [.ioError, .permissionDenied, .tooManyOpenFilesInSystem],
            "getdents": [.ioError, .staleNFSFileHandle],
            "rename": [.ioError, .permissionDenied, .noSpace, .readOnlyFileSystem],
            "unlink": [.ioError, .notPermitted, .readOnlyFileSystem],
            "fsync": [.ioError, .diskQuotaExceeded],
            "write": [.ioError, .noSpace],
            "mkdir": [.permissionDenied, .noSpace],
            "inotify_add_watch": [.noSpace, .noMemory],
            "statfs": [.ioError, .staleNFSFileHandle],
        ]
        private static let longest = 20

        /// - Parameters:
        ///   - count: how many calls fail in all.
        ///   - every: how many calls there are to one that begins a fault, on average.
        package init(below: [FilePath], seed: UInt64, count: Int, every: Int) {
            self.below = below
            self.every = Double(max(1, every))
            left = count
            random = SeededGenerator(seed: seed)
        }

        /// `below=FOLDER;seed=N;count=N;every=N`, as a process finds it in its environment; nil for anything else.
        init?(_ text: String) {
            var values: [Substring: Substring] = [:]
            var below: [FilePath] = []
            for word in text.split(separator: ";") {
                let pair = word.split(separator: "=", maxSplits: 1)
                guard pair.count == 2 else { return nil }
                if pair[0] == "below" { below.append(FilePath(String(pair[1]))) } else { values[pair[0]] = pair[1] }
            }
            guard let seed = values["seed"].flatMap({ UInt64($0) }), let count = values["count"].flatMap({ Int($0) }),
                let every = values["every"].flatMap({ Int($0) }), !below.isEmpty
            else { return nil }
            self.init(below: below, seed: seed, count: count, every: every)
        }

        package var isSpent: Bool { left == 0 }

        /// What a call on a path answers instead of being made; nil = it is made.
        mutating func next(_ call: String, _ path: FilePath) -> Errno? {
            guard left > 0, let codes = Self.codes[call], below.contains(where: { path.isWithin($0) }),
                let code = lasting(call) ?? drawn(call, codes)
            else { return nil }
            left -= 1
            injected.append((call, code, path))
            return code
        }

        private mutating func lasting(_ call: String) -> Errno? {
            guard let (code, calls) = lasting[call] else { return nil }
            lasting[call] = calls > 1 ? (code, calls - 1) : nil
            return code
        }

        private mutating func drawn(_ call: String, _ codes: [Errno]) -> Errno? {
            guard random.fraction() < 1 / every, let code = codes.randomElement(using: &random) else { return nil }
            if random.fraction() < 0.5 { lasting[call] = (code, Int.random(in: 1...Self.longest, using: &random)) }
            return code
        }
    }

    /// The plans by which calls fail now. Beside those that tests begin, a process has the one that `INLET_FAULTS` names; the
    /// file of `INLET_FAULTS_LOG` gets a line for each call that it let fail.
    package enum KernelFaults {
        private struct State {
            var plans: [Int: KernelFaultPlan] = [:]
            var newest = 0
            /// Opened with the first call, before the process is confined.
            var log: CInt?

            init() {
                guard let plan = ProcessSetup.environment("INLET_FAULTS").flatMap({ KernelFaultPlan($0) }) else {
                    return
                }
                plans[0] = plan
                log = ProcessSetup.environment("INLET_FAULTS_LOG").map {
                    open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
                }
            }
        }

        private static let state = Mutex(State())

        /// - Returns: by what the plan is asked for and ended.
        package static func begin(_ plan: KernelFaultPlan) -> Int {
            state.withLock { state in
                state.newest += 1
                state.plans[state.newest] = plan
                return state.newest
            }
        }

        /// How a plan stands; nil once it was ended.
        package static func plan(_ number: Int) -> KernelFaultPlan? { state.withLock { $0.plans[number] } }

        /// Lets calls succeed again. - Returns: the plan as it stood.
        @discardableResult
        package static func end(_ number: Int) -> KernelFaultPlan? {
            state.withLock { $0.plans.removeValue(forKey: number) }
        }

        /// What a call answers instead of being made; nil = it is made.
        static func next(_ call: String, _ path: FilePath?) -> Errno? {
            guard let path else { return nil }
            let folders = state.withLock { $0.plans.values.flatMap(\.below) }
            guard !folders.isEmpty, isMeant(path, folders) else { return nil }
            let whole = whole(path)
            return state.withLock { state in
                for number in state.plans.keys {
                    guard let code = state.plans[number]?.next(call, whole) else { continue }
                    if let log = state.log { note("\(call) \(code.rawValue) \(whole)\n", log) }
                    return code
                }
                return nil
            }
        }

        /// Whether a plan may mean it, by its bytes: to take each path of each agent apart costs such a build dearly.
        private static func isMeant(_ path: FilePath, _ folders: [FilePath]) -> Bool {
            path.withPlatformString { name in
                let descriptors = "/proc/self/fd/"
                guard strncmp(name, descriptors, descriptors.utf8.count) == 0 else { return isMeant(name, folders) }
                let number = strtol(name + descriptors.utf8.count, nil, 10)
                return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { text in
                    guard let start = text.baseAddress else { return false }
                    let length = readlink("\(descriptors)\(number)", start, text.count - 1)
                    guard length > 0 else { return false }
                    text[length] = 0
                    return isMeant(start, folders)
                }
            }
        }

        /// A folder above may be meant by a name below it.
        private static func isMeant(_ name: UnsafePointer<CChar>, _ folders: [FilePath]) -> Bool {
            let length = strlen(name)
            return folders.contains { folder in
                folder.withPlatformString { strncmp(name, $0, min(length, strlen($0))) == 0 }
            }
        }

        /// `Folder.at` makes calls by paths below `/proc/self/fd`: where those lead.
        private static func whole(_ path: FilePath) -> FilePath {
            let parts = path.components.map(\.string)
            guard parts.count > 3, parts[..<3] == ["proc", "self", "fd"] else { return path }
            var text = [CChar](repeating: 0, count: Int(PATH_MAX))
            guard readlink("/proc/self/fd/\(parts[3])", &text, text.count - 1) > 0 else { return path }
            return FilePath(platformString: text).pushing(
                FilePath(root: nil, path.components.dropFirst(4).filter { $0.string != "." }))
        }

        private static func note(_ line: String, _ file: CInt) {
            let bytes = Array(line.utf8)
            // The run says how many there were by this file; a line that is lost makes no promise false.
            _ = write(file, bytes, bytes.count)
        }
    }
#endif
