#pragma once
/// Accumulator operand lists of wgmma for every width: TH_WGMMA_WIDTHS(APPLY, Type, name) expands to
/// APPLY(Type, name, n, "%0, %1, …", "+f"(d[0]), "+f"(d[1]), …, e0 … e6) for n = 8, 16 … 256, where e0… are the numbers
/// of the operands that follow the n/2 accumulators.

#define TH_WGMMA_LIST_8 "%0, %1, %2, %3"
#define TH_WGMMA_D_8 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define TH_WGMMA_LIST_16 TH_WGMMA_LIST_8 ", %4, %5, %6, %7"
#define TH_WGMMA_D_16 TH_WGMMA_D_8, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define TH_WGMMA_LIST_24 TH_WGMMA_LIST_16 ", %8, %9, %10, %11"
#define TH_WGMMA_D_24 TH_WGMMA_D_16, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define TH_WGMMA_LIST_32 TH_WGMMA_LIST_24 ", %12, %13, %14, %15"
#define TH_WGMMA_D_32 TH_WGMMA_D_24, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define TH_WGMMA_LIST_40 TH_WGMMA_LIST_32 ", %16, %17, %18, %19"
#define TH_WGMMA_D_40 TH_WGMMA_D_32, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define TH_WGMMA_LIST_48 TH_WGMMA_LIST_40 ", %20, %21, %22, %23"
#define TH_WGMMA_D_48 TH_WGMMA_D_40, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define TH_WGMMA_LIST_56 TH_WGMMA_LIST_48 ", %24, %25, %26, %27"
#define TH_WGMMA_D_56 TH_WGMMA_D_48, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define TH_WGMMA_LIST_64 TH_WGMMA_LIST_56 ", %28, %29, %30, %31"
#define TH_WGMMA_D_64 TH_WGMMA_D_56, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define TH_WGMMA_LIST_72 TH_WGMMA_LIST_64 ", %32, %33, %34, %35"
#define TH_WGMMA_D_72 TH_WGMMA_D_64, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define TH_WGMMA_LIST_80 TH_WGMMA_LIST_72 ", %36, %37, %38, %39"
#define TH_WGMMA_D_80 TH_WGMMA_D_72, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define TH_WGMMA_LIST_88 TH_WGMMA_LIST_80 ", %40, %41, %42, %43"
#define TH_WGMMA_D_88 TH_WGMMA_D_80, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define TH_WGMMA_LIST_96 TH_WGMMA_LIST_88 ", %44, %45, %46, %47"
#define TH_WGMMA_D_96 TH_WGMMA_D_88, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define TH_WGMMA_LIST_104 TH_WGMMA_LIST_96 ", %48, %49, %50, %51"
#define TH_WGMMA_D_104 TH_WGMMA_D_96, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define TH_WGMMA_LIST_112 TH_WGMMA_LIST_104 ", %52, %53, %54, %55"
#define TH_WGMMA_D_112 TH_WGMMA_D_104, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define TH_WGMMA_LIST_120 TH_WGMMA_LIST_112 ", %56, %57, %58, %59"
#define TH_WGMMA_D_120 TH_WGMMA_D_112, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define TH_WGMMA_LIST_128 TH_WGMMA_LIST_120 ", %60, %61, %62, %63"
#define TH_WGMMA_D_128 TH_WGMMA_D_120, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define TH_WGMMA_LIST_136 TH_WGMMA_LIST_128 ", %64, %65, %66, %67"
#define TH_WGMMA_D_136 TH_WGMMA_D_128, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define TH_WGMMA_LIST_144 TH_WGMMA_LIST_136 ", %68, %69, %70, %71"
#define TH_WGMMA_D_144 TH_WGMMA_D_136, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define TH_WGMMA_LIST_152 TH_WGMMA_LIST_144 ", %72, %73, %74, %75"
#define TH_WGMMA_D_152 TH_WGMMA_D_144, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define TH_WGMMA_LIST_160 TH_WGMMA_LIST_152 ", %76, %77, %78, %79"
#define TH_WGMMA_D_160 TH_WGMMA_D_152, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define TH_WGMMA_LIST_168 TH_WGMMA_LIST_160 ", %80, %81, %82, %83"
#define TH_WGMMA_D_168 TH_WGMMA_D_160, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define TH_WGMMA_LIST_176 TH_WGMMA_LIST_168 ", %84, %85, %86, %87"
#define TH_WGMMA_D_176 TH_WGMMA_D_168, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define TH_WGMMA_LIST_184 TH_WGMMA_LIST_176 ", %88, %89, %90, %91"
#define TH_WGMMA_D_184 TH_WGMMA_D_176, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define TH_WGMMA_LIST_192 TH_WGMMA_LIST_184 ", %92, %93, %94, %95"
#define TH_WGMMA_D_192 TH_WGMMA_D_184, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define TH_WGMMA_LIST_200 TH_WGMMA_LIST_192 ", %96, %97, %98, %99"
#define TH_WGMMA_D_200 TH_WGMMA_D_192, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define TH_WGMMA_LIST_208 TH_WGMMA_LIST_200 ", %100, %101, %102, %103"
#define TH_WGMMA_D_208 TH_WGMMA_D_200, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define TH_WGMMA_LIST_216 TH_WGMMA_LIST_208 ", %104, %105, %106, %107"
#define TH_WGMMA_D_216 TH_WGMMA_D_208, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define TH_WGMMA_LIST_224 TH_WGMMA_LIST_216 ", %108, %109, %110, %111"
#define TH_WGMMA_D_224 TH_WGMMA_D_216, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define TH_WGMMA_LIST_232 TH_WGMMA_LIST_224 ", %112, %113, %114, %115"
#define TH_WGMMA_D_232 TH_WGMMA_D_224, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define TH_WGMMA_LIST_240 TH_WGMMA_LIST_232 ", %116, %117, %118, %119"
#define TH_WGMMA_D_240 TH_WGMMA_D_232, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define TH_WGMMA_LIST_248 TH_WGMMA_LIST_240 ", %120, %121, %122, %123"
#define TH_WGMMA_D_248 TH_WGMMA_D_240, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define TH_WGMMA_LIST_256 TH_WGMMA_LIST_248 ", %124, %125, %126, %127"
#define TH_WGMMA_D_256 TH_WGMMA_D_248, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

#define TH_WGMMA_WIDTHS(APPLY, Type, name)                                                     \
  APPLY(Type, name, 8, TH_WGMMA_LIST_8, TH_WGMMA_D_8, 4, 5, 6, 7, 8, 9, 10)                    \
  APPLY(Type, name, 16, TH_WGMMA_LIST_16, TH_WGMMA_D_16, 8, 9, 10, 11, 12, 13, 14)             \
  APPLY(Type, name, 24, TH_WGMMA_LIST_24, TH_WGMMA_D_24, 12, 13, 14, 15, 16, 17, 18)           \
  APPLY(Type, name, 32, TH_WGMMA_LIST_32, TH_WGMMA_D_32, 16, 17, 18, 19, 20, 21, 22)           \
  APPLY(Type, name, 40, TH_WGMMA_LIST_40, TH_WGMMA_D_40, 20, 21, 22, 23, 24, 25, 26)           \
  APPLY(Type, name, 48, TH_WGMMA_LIST_48, TH_WGMMA_D_48, 24, 25, 26, 27, 28, 29, 30)           \
  APPLY(Type, name, 56, TH_WGMMA_LIST_56, TH_WGMMA_D_56, 28, 29, 30, 31, 32, 33, 34)           \
  APPLY(Type, name, 64, TH_WGMMA_LIST_64, TH_WGMMA_D_64, 32, 33, 34, 35, 36, 37, 38)           \
  APPLY(Type, name, 72, TH_WGMMA_LIST_72, TH_WGMMA_D_72, 36, 37, 38, 39, 40, 41, 42)           \
  APPLY(Type, name, 80, TH_WGMMA_LIST_80, TH_WGMMA_D_80, 40, 41, 42, 43, 44, 45, 46)           \
  APPLY(Type, name, 88, TH_WGMMA_LIST_88, TH_WGMMA_D_88, 44, 45, 46, 47, 48, 49, 50)           \
  APPLY(Type, name, 96, TH_WGMMA_LIST_96, TH_WGMMA_D_96, 48, 49, 50, 51, 52, 53, 54)           \
  APPLY(Type, name, 104, TH_WGMMA_LIST_104, TH_WGMMA_D_104, 52, 53, 54, 55, 56, 57, 58)        \
  APPLY(Type, name, 112, TH_WGMMA_LIST_112, TH_WGMMA_D_112, 56, 57, 58, 59, 60, 61, 62)        \
  APPLY(Type, name, 120, TH_WGMMA_LIST_120, TH_WGMMA_D_120, 60, 61, 62, 63, 64, 65, 66)        \
  APPLY(Type, name, 128, TH_WGMMA_LIST_128, TH_WGMMA_D_128, 64, 65, 66, 67, 68, 69, 70)        \
  APPLY(Type, name, 136, TH_WGMMA_LIST_136, TH_WGMMA_D_136, 68, 69, 70, 71, 72, 73, 74)        \
  APPLY(Type, name, 144, TH_WGMMA_LIST_144, TH_WGMMA_D_144, 72, 73, 74, 75, 76, 77, 78)        \
  APPLY(Type, name, 152, TH_WGMMA_LIST_152, TH_WGMMA_D_152, 76, 77, 78, 79, 80, 81, 82)        \
  APPLY(Type, name, 160, TH_WGMMA_LIST_160, TH_WGMMA_D_160, 80, 81, 82, 83, 84, 85, 86)        \
  APPLY(Type, name, 168, TH_WGMMA_LIST_168, TH_WGMMA_D_168, 84, 85, 86, 87, 88, 89, 90)        \
  APPLY(Type, name, 176, TH_WGMMA_LIST_176, TH_WGMMA_D_176, 88, 89, 90, 91, 92, 93, 94)        \
  APPLY(Type, name, 184, TH_WGMMA_LIST_184, TH_WGMMA_D_184, 92, 93, 94, 95, 96, 97, 98)        \
  APPLY(Type, name, 192, TH_WGMMA_LIST_192, TH_WGMMA_D_192, 96, 97, 98, 99, 100, 101, 102)     \
  APPLY(Type, name, 200, TH_WGMMA_LIST_200, TH_WGMMA_D_200, 100, 101, 102, 103, 104, 105, 106) \
  APPLY(Type, name, 208, TH_WGMMA_LIST_208, TH_WGMMA_D_208, 104, 105, 106, 107, 108, 109, 110) \
  APPLY(Type, name, 216, TH_WGMMA_LIST_216, TH_WGMMA_D_216, 108, 109, 110, 111, 112, 113, 114) \
  APPLY(Type, name, 224, TH_WGMMA_LIST_224, TH_WGMMA_D_224, 112, 113, 114, 115, 116, 117, 118) \
  APPLY(Type, name, 232, TH_WGMMA_LIST_232, TH_WGMMA_D_232, 116, 117, 118, 119, 120, 121, 122) \
  APPLY(Type, name, 240, TH_WGMMA_LIST_240, TH_WGMMA_D_240, 120, 121, 122, 123, 124, 125, 126) \
  APPLY(Type, name, 248, TH_WGMMA_LIST_248, TH_WGMMA_D_248, 124, 125, 126, 127, 128, 129, 130) \
  APPLY(Type, name, 256, TH_WGMMA_LIST_256, TH_WGMMA_D_256, 128, 129, 130, 131, 132, 133, 134)
