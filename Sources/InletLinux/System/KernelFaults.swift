#if DEBUG
    import Glibc
    import InletCore
    import Synchronization
    package import SystemPackage

    /// Which calls on files fail, with which error, and for how long: drawn from a seed, so that a run can be repeated.
    ///
    /// About one call in `every` begins a fault: that call alone fails, or it and the next ones of its name. Only calls
    /// below one of the folders `below` fail, so that agents of other tests in the same process see none of it.
    package struct KernelFaultPlan: Sendable {
        package let below: [FilePath]
        private let every: Double
        private var left: Int
        private var random: SeededGenerator
        /// Calls that keep failing, and how often.
        private var lasting: [String: (code: Errno, calls: Int)] = [:]
        /// The calls that failed.
        package private(set) var injected: [(call: String, code: Errno, path: FilePath)] = []

        /// The errors that the manual pages list for a failing disk, server or limit, or for a person's interference.
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
        ///   - every: the average number of calls to one that begins a fault.
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

        /// The error for a call on a path, instead of making it; nil makes it.
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

    /// The plans by which calls fail now. Besides those that tests begin, a process has the plan that `INLET_FAULTS`
    /// names; the file of `INLET_FAULTS_LOG` gets a line for each failed call.
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

        /// - Returns: the handle with which the plan is queried and ended.
        package static func begin(_ plan: KernelFaultPlan) -> Int {
            state.withLock { state in
                state.newest += 1
                state.plans[state.newest] = plan
                return state.newest
            }
        }

        /// The progress of a plan; nil once it has ended.
        package static func plan(_ number: Int) -> KernelFaultPlan? { state.withLock { $0.plans[number] } }

        /// Lets calls succeed again. - Returns: the plan's final progress.
        @discardableResult
        package static func end(_ number: Int) -> KernelFaultPlan? {
            state.withLock { $0.plans.removeValue(forKey: number) }
        }

        /// The error for a call, instead of making it; nil makes it.
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

        /// Whether a plan may apply to it, by its bytes: parsing every path of every agent would cost such a build
        /// dearly.
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

        /// A folder above may apply to a name below it.
        private static func isMeant(_ name: UnsafePointer<CChar>, _ folders: [FilePath]) -> Bool {
            let length = strlen(name)
            return folders.contains { folder in
                folder.withPlatformString { strncmp(name, $0, min(length, strlen($0))) == 0 }
            }
        }

        /// `Folder.at` makes calls by paths below `/proc/self/fd`: follows them to their targets.
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
            // The run counts faults by this file; a lost line breaks no promise.
            _ = write(file, bytes, bytes.count)
        }
    }
#endif
