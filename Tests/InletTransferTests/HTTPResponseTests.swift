import InletCore
import InletTransfer
import Testing

struct HTTPResponseTests {
    /// 1994-11-06T08:49:37Z, the moment of RFC 9110's examples.
    private let example = WallTime(milliseconds: 784_111_777_000)

    @Test(
        arguments: [
            ("0", .zero), ("120", .seconds(120)), (" 7".trimming(), .seconds(7)),
            ("86401", .seconds(86_400)), ("99999999999999999999999", .seconds(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", .seconds(60)),
            ("Sun Nov  6 08:50:37 1994", .seconds(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", .zero),
            ("Thu, 01 Jan 1970 00:00:00 GMT", .zero),
            ("Tue, 29 Feb 2050 00:00:00 GMT", .seconds(86_400)),
            ("-5", nil), ("1.5", nil), ("soon", nil), ("", nil), ("Sun, 06 Foo 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 25:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:37 CET", nil),
        ] as [(String, Duration?)])
    func `Retry-After is seconds or a date`(value: String, expected: Duration?) {
        let answer = HTTPResponse(status: 503, headers: [("retry-after", value)])
        #expect(answer.retryAfter(now: example) == expected)
    }

    @Test func `without the field there is no wait`() {
        #expect(HTTPResponse(status: 503).retryAfter(now: example) == nil)
    }

    @Test func `dates agree with RFC 3339 over the years`() {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        for day in stride(from: Int64(0), to: 60_000, by: 17) {
            let time = WallTime(milliseconds: day * 86_400_000 + 3_723_000)
            let parts = time.rfc3339.prefix(10).split(separator: "-").map { Int($0) ?? 0 }
            let date = "Mon, \(parts[2]) \(months[parts[1] - 1]) \(parts[0]) 01:02:03 GMT"
            let answer = HTTPResponse(status: 503, headers: [("Retry-After", date)])
            #expect(answer.retryAfter(now: time + .seconds(-5)) == .seconds(5), "\(date)")
        }
    }
}

extension String {
    /// What is left of a field's value after a client has read it.
    fileprivate func trimming() -> String { String(drop(while: \.isWhitespace)) }
}
