# heed.  `make` builds the library and the program, `make test` proves them, `make demo` shows them, `make help` lists the rest.
# Variants build beside each other in build/<flavour>/ and never need a clean:
#   make SAN=address,undefined   make SAN=thread   make REAL=double   make DEBUG=1   make CC=clang   make BLAS=openblas

VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
CXX ?= g++
BLAS ?= blis
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
SYSLIB := /usr/lib/$(MULTIARCH)

# ---- flavour: everything that changes the objects names its own folder ----
comma := ,
FLAVOUR := $(if $(findstring clang,$(CC)),clang,gcc)
ifneq ($(BLAS),blis)
FLAVOUR := $(FLAVOUR)-$(BLAS)
endif
ifdef REAL
FLAVOUR := $(FLAVOUR)-$(REAL)
endif
ifdef SAN
FLAVOUR := $(FLAVOUR)-$(subst $(comma),+,$(SAN))
endif
ifdef DEBUG
FLAVOUR := $(FLAVOUR)-debug
endif
OUT := build/$(FLAVOUR)

# ---- flags ----
# No -ffast-math: masks are -inf.  Contraction is what lets a*b+c be one instruction where the set has it.
OPTIMISE := -O3
ifdef DEBUG
OPTIMISE := -O0 -g3
endif
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wformat=2 \
        -Wno-unknown-pragmas $(if $(WERROR),-Werror)
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE -DHEED_VERSION_TEXT='"$(VERSION)"'
CFLAGS_ALL := -std=c11 -g $(OPTIMISE) $(WARN) -fPIC -fvisibility=hidden -ffp-contract=fast -fno-math-errno \
              -fno-trapping-math
OPENMP := -fopenmp
ifeq ($(REAL),double)
CPPFLAGS += -DHEED_DOUBLE
endif
ifdef SAN
CFLAGS_ALL += -fsanitize=$(SAN) -fno-omit-frame-pointer $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
LDFLAGS += -fsanitize=$(SAN)
endif
# The thread sanitizer does not understand OpenMP's barriers nor a threaded BLAS.
ifeq ($(SAN),thread)
OPENMP :=
BLAS := reference
endif
CFLAGS_ALL += $(OPENMP) $(CFLAGS)
LDFLAGS += $(OPENMP)

# Which CBLAS; the openmp flavours, found again at run time whatever the system's alternatives say.
BLAS_LIBS_blis := -L$(SYSLIB)/blis-openmp -Wl,-rpath,$(SYSLIB)/blis-openmp -lblis
BLAS_LIBS_openblas := -L$(SYSLIB)/openblas-openmp -Wl,-rpath,$(SYSLIB)/openblas-openmp -lopenblas
BLAS_LIBS_reference := -L$(SYSLIB)/blas -Wl,-rpath,$(SYSLIB)/blas -lblas
LIBS := $(BLAS_LIBS_$(BLAS)) -ljansson -lz -lm -lpthread -ldl

# ---- instruction sets: kernels are compiled once for each.  A line here and one in src/kernel/kernels.h adds a set. ----
ISAS := baseline avx2
ISA_FLAGS_baseline :=
ISA_FLAGS_avx2 := -mavx2 -mfma

# Sources in src/kernel that are the same for every set; all others there are compiled per set.
KERNEL_ONCE := src/kernel/dispatch.c src/kernel/blas.c src/kernel/product.c src/kernel/machine.c
KERNEL_EACH := $(filter-out $(KERNEL_ONCE),$(wildcard src/kernel/*.c))
LIB_SRC := $(filter-out $(KERNEL_EACH),$(wildcard src/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(OUT)/%.o) $(foreach isa,$(ISAS),$(KERNEL_EACH:%.c=$(OUT)/%.$(isa).o))
CLI_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard cli/*.c bench/*.c))
TESTS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/test_*.c))

.PHONY: all tests
all: $(OUT)/libheed.a $(if $(wildcard cli/main.c),$(OUT)/heed)
tests: $(TESTS)

$(OUT)/libheed.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(OUT)/heed: $(CLI_OBJ) $(OUT)/libheed.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(OUT)/tests/test_%: $(OUT)/tests/test_%.o $(OUT)/libheed.a
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

define isa_rule
$(OUT)/src/kernel/%.$(1).o: src/kernel/%.c
	@mkdir -p $$(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(ISA_FLAGS_$(1)) -DHEED_ISA=$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
.SECONDARY:
