import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Every answer of the table at every destination: what each hears of it, and what the one rule makes of that.
@Suite struct FailureTableTests {
    @Test func `the table has forty answers and more, and no cell by default`() {
        #expect(FailureTable.rows.count >= 40)
        for row in FailureTable.rows { #expect(row.cells.count == FailureTable.kinds.count, "\(row)") }
        #expect(Set(FailureTable.rows.map(\.name)).count == FailureTable.rows.count)
    }

    @Test(arguments: FailureTable.rows) func `each answer means one thing at each destination`(
        _ row: FailureTable.Row
    ) throws {
        for (kind, cell) in zip(FailureTable.kinds, row.cells) where cell != "-" {
            let error = try Self.error(row, at: kind)
            let ruling =
                row.step == .commit ? FailureClassifier.ruling(ofCommit: error) : FailureClassifier.ruling(error)
            #expect(Self.letter(ruling) == cell, "\(row) at \(kind): \(error)")
        }
    }

    private static func letter(_ ruling: FailureClassifier.Ruling) -> Character {
        switch ruling {
        case .file: "f"
        case .retry: "r"
        case .refusal: "?"
        case .outage: "o"
        case .stranger: "s"
        case .credentials: "c"
        case .unknownDelivered: "u"
        case .own: "!"
        }
    }

    private static func error(_ row: FailureTable.Row, at kind: String) throws -> DeliveryError {
        if let errno = row.errno {
            return FolderPipeline.unwritable(SystemError(call: "write", path: "/x", code: errno))
        }
        let response = row.response
        let isSuccess = (200..<300).contains(response.status)
        switch kind {
        case "r2": return try spiral(row)
        case "s3":
            if isSuccess { return S3API.badAnswer(response, "asking") }
            return DeliveryError(S3Refusal(response, now: .now), "asking", now: .now)
        case "gighive":
            let endpoint: GigHiveEndpoint = row.step == .commit ? .finalize : .files
            return GigHiveVerdict(response, at: endpoint).error(response, "asking")
        case "vopi":
            if row.step == .send { return VOPIUpload.refusal(response, try url("https://store.example/v")) }
            let endpoint: VOPIEndpoint = row.step == .commit ? .create : .presign
            return VOPIVerdict(response, at: endpoint).error(response, "asking", hint: "log in", now: .now)
        default:
            if isSuccess { return RoboscopeAnswer.unreadable("asking", "no object") }
            return RoboscopeAnswer.error(response, "asking")
        }
    }

    private static func spiral(_ row: FailureTable.Row) throws -> DeliveryError {
        if row.step == .send {
            let target = PresignedTarget(url: try url("https://store.example/v"), headers: [])
            return target.refusal(row.response, "sending")
        }
        if (200..<300).contains(row.response.status) { return .misunderstood("asking: no JSON") }
        return DeliveryError(row.response, "asking", in: .json, secretsMatter: true, now: .now)
    }

    private static func url(_ text: String) throws -> HTTPURL {
        try HTTPURL(text, rules: .configured(allowHTTP: false))
    }
}
