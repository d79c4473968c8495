package import InletCore

extension ProbePace {
    /// The pace of this process. Debug builds read `INLET_PROBE_PACE`, `FIRST:INTERVAL` in milliseconds, so that tests of the
    /// whole agent need not wait for minutes.
    package static var configured: ProbePace {
        #if DEBUG
            let parts =
                ProcessSetup.environment("INLET_PROBE_PACE")?.split(separator: ":").compactMap { Int64($0) } ?? []
            if parts.count == 2 { return ProbePace(first: .milliseconds(parts[0]), interval: .milliseconds(parts[1])) }
        #endif
        return ProbePace()
    }
}
